package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// describeCluster answers with the nodes that the client can reach.
func (s *Server) describeCluster(c *call, req *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	resp.ClusterID, resp.ControllerID = s.node.ClusterID(), s.node.Controller()
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = 0
		if c.cluster(kmsg.ACLOperationDescribe) == nil {
			resp.ClusterAuthorizedOperations = c.authorized(kmsg.ACLResourceTypeCluster, clusterName)
		}
	}
	if req.EndpointType != 1 && c.version >= 1 { // brokers; no node is a controller only
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		return resp
	}
	resp.EndpointType = 1
	for _, b := range c.conn.brokers() {
		broker := kmsg.NewDescribeClusterResponseBroker()
		broker.NodeID, broker.Host, broker.Port, broker.Rack = b.id, b.host, b.port, b.rack
		resp.Brokers = append(resp.Brokers, broker)
	}
	return resp
}
