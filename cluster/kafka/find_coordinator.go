package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// findCoordinator answers with this node: it coordinates every group and every
// transactional id.
func (s *Server) findCoordinator(c *call, req *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	host, port := c.conn.advertised()
	code := int16(0)
	if req.CoordinatorType != 0 && req.CoordinatorType != 1 { // groups, transactions
		code = kerr.InvalidRequest.Code
	}
	mayFind := func(key string) int16 {
		switch {
		case code != 0:
			return code
		case req.CoordinatorType == 1:
			return errorCode(c.txn(kmsg.ACLOperationDescribe, key))
		}
		return errorCode(c.group(kmsg.ACLOperationDescribe, key))
	}
	if c.version < 4 {
		code = mayFind(req.CoordinatorKey)
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = code, nodeID, host, port
		return resp
	}
	for _, key := range req.CoordinatorKeys {
		coordinator := kmsg.NewFindCoordinatorResponseCoordinator()
		coordinator.Key, coordinator.ErrorCode = key, mayFind(key)
		coordinator.NodeID, coordinator.Host, coordinator.Port = nodeID, host, port
		resp.Coordinators = append(resp.Coordinators, coordinator)
	}
	return resp
}
