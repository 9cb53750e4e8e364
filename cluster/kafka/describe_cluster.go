package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// describeCluster answers with this node.
func (s *Server) describeCluster(c *call, req *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	host, port := c.conn.advertised()
	broker := kmsg.NewDescribeClusterResponseBroker()
	broker.NodeID, broker.Host, broker.Port = nodeID, host, port
	resp.ClusterID, resp.ControllerID = s.node.ClusterID(), nodeID
	if req.IncludeClusterAuthorizedOperations {
		resp.ClusterAuthorizedOperations = 0
		if c.cluster(kmsg.ACLOperationDescribe) == nil {
			resp.ClusterAuthorizedOperations = c.authorized(kmsg.ACLResourceTypeCluster, clusterName)
		}
	}
	if req.EndpointType != 1 && c.version >= 1 { // brokers; the node is no controller to clients
		resp.ErrorCode = kerr.MismatchedEndpointType.Code
		return resp
	}
	resp.EndpointType = 1
	resp.Brokers = append(resp.Brokers, broker)
	return resp
}
