package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// findCoordinator answers with the node that leads the metadata: it coordinates every
// group and every transactional id.
func (s *Server) findCoordinator(c *call, req *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	find := func(key string) (broker, error) {
		err := error(nil)
		switch req.CoordinatorType {
		case 0: // of a group
			err = c.group(kmsg.ACLOperationDescribe, key)
		case 1: // of a transactional id
			err = c.txn(kmsg.ACLOperationDescribe, key)
		default:
			err = kerr.InvalidRequest
		}
		if err != nil {
			return broker{id: -1, port: -1}, err
		}
		return s.coordinator(c)
	}
	if c.version < 4 {
		b, err := find(req.CoordinatorKey)
		resp.ErrorCode, resp.NodeID, resp.Host, resp.Port = errorCode(err), b.id, b.host, b.port
		return resp
	}
	for _, key := range req.CoordinatorKeys {
		b, err := find(key)
		coordinator := kmsg.NewFindCoordinatorResponseCoordinator()
		coordinator.Key, coordinator.ErrorCode = key, errorCode(err)
		coordinator.NodeID, coordinator.Host, coordinator.Port = b.id, b.host, b.port
		resp.Coordinators = append(resp.Coordinators, coordinator)
	}
	return resp
}

// coordinator returns the coordinator as this client can reach it.
func (s *Server) coordinator(c *call) (broker, error) {
	id := s.node.Controller()
	if id < 0 || id != s.node.ID() && !s.node.Up(id) {
		return broker{id: -1, port: -1}, kerr.CoordinatorNotAvailable // nobody has been elected, or not yet another one
	}
	return c.conn.broker(id)
}
