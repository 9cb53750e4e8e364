package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// leaveGroup takes members out of a group: one until version 2, any number after.
func (s *Server) leaveGroup(c *call, req *kmsg.LeaveGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	g, err := s.memberGroup(c, req.Group)
	unknown := errors.Is(err, membership.ErrUnknownMember)
	if err != nil && !unknown {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	if c.version <= 2 {
		if !unknown {
			_, err = g.Leave(req.MemberID, "")
			g.ForgetIfEmpty(c.ctx)
		}
		resp.ErrorCode = errorCode(err)
		return resp
	}
	for _, m := range req.Members {
		member := kmsg.NewLeaveGroupResponseMember()
		member.MemberID, member.InstanceID = m.MemberID, m.InstanceID
		if !unknown {
			member.MemberID, err = g.Leave(m.MemberID, orEmpty(m.InstanceID))
		}
		member.ErrorCode = errorCode(err)
		resp.Members = append(resp.Members, member)
	}
	if !unknown {
		g.ForgetIfEmpty(c.ctx)
	}
	return resp
}
