package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// leaveGroup takes members out of a group: one until version 2, any number after.
func (s *Server) leaveGroup(c *call, req *kmsg.LeaveGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.LeaveGroupResponse)
	if err := c.group(kmsg.ACLOperationRead, req.Group); err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	g, ok := s.groups.find(req.Group)
	if c.version <= 2 {
		resp.ErrorCode = kerr.UnknownMemberID.Code
		if ok {
			_, err := g.Leave(req.MemberID, "")
			resp.ErrorCode = errorCode(err)
		}
		return resp
	}
	for _, m := range req.Members {
		member := kmsg.NewLeaveGroupResponseMember()
		member.MemberID, member.InstanceID = m.MemberID, m.InstanceID
		member.ErrorCode = kerr.UnknownMemberID.Code
		if ok {
			id, err := g.Leave(m.MemberID, orEmpty(m.InstanceID))
			member.MemberID, member.ErrorCode = id, errorCode(err)
		}
		resp.Members = append(resp.Members, member)
	}
	return resp
}
