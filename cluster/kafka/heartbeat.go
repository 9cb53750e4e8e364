package kafka

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// heartbeat keeps a member of a group.
func (s *Server) heartbeat(c *call, req *kmsg.HeartbeatRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.HeartbeatResponse)
	g, err := s.memberGroup(c, req.Group)
	if err == nil {
		err = g.Heartbeat(req.MemberID, orEmpty(req.InstanceID), req.Generation)
	}
	resp.ErrorCode = errorCode(err)
	return resp
}

// memberGroup returns the group of a client that says it is a member.
func (s *Server) memberGroup(c *call, id string) (*membership.Group, error) {
	if err := c.group(kmsg.ACLOperationRead, id); err != nil {
		return nil, err
	}
	epoch, err := s.coordinate()
	if err != nil {
		return nil, err
	}
	g, ok := s.groups.find(epoch, id)
	if !ok {
		return nil, membership.ErrUnknownMember
	}
	return g, nil
}
