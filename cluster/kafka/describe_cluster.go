package kafka

import "github.com/twmb/franz-go/pkg/kmsg"

// describeCluster answers with this node.
func (s *Server) describeCluster(c *call, req *kmsg.DescribeClusterRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClusterResponse)
	host, port := s.advertised(c.conn.net)
	broker := kmsg.NewDescribeClusterResponseBroker()
	broker.NodeID, broker.Host, broker.Port = nodeID, host, port
	resp.ClusterID, resp.ControllerID = s.node.ClusterID(), nodeID
	resp.Brokers = append(resp.Brokers, broker)
	return resp
}
