package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// heartbeat keeps a member of a group.
func (s *Server) heartbeat(_ *call, req *kmsg.HeartbeatRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	g, ok := s.groups.find(req.Group)
	if !ok {
		resp.ErrorCode = kerr.UnknownMemberID.Code
		return resp
	}
	resp.ErrorCode = errorCode(g.Heartbeat(req.MemberID, orEmpty(req.InstanceID), req.Generation))
	return resp
}
