package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeat keeps a member of a group.
func (s *Server) heartbeat(c *call, req *kmsg.HeartbeatRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	if err := c.group(kmsg.ACLOperationRead, req.Group); err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	g, ok := s.groups.find(req.Group)
	if !ok {
		resp.ErrorCode = kerr.UnknownMemberID.Code
		return resp
	}
	resp.ErrorCode = errorCode(g.Heartbeat(req.MemberID, orEmpty(req.InstanceID), req.Generation))
	return resp
}
