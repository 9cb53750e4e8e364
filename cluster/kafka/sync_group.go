package kafka

import (
	"bytes"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// syncGroup answers with the member's assignment, once the leader has brought it.
func (s *Server) syncGroup(c *call, req *kmsg.SyncGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.SyncGroupResponse)
	g, err := s.memberGroup(c, req.Group)
	if errors.Is(err, membership.ErrUnknownMember) && len(s.node.Members()) > 1 {
		err = membership.ErrRebalanceInProgress // it joined at another coordinator, which did not keep the group
	}
	if err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	sync := membership.Sync{
		MemberID: req.MemberID, InstanceID: orEmpty(req.InstanceID), Generation: req.Generation,
		Type: orEmpty(req.ProtocolType), Protocol: orEmpty(req.Protocol),
		Assignments: map[string][]byte{},
	}
	for _, a := range req.GroupAssignment {
		sync.Assignments[a.MemberID] = bytes.Clone(a.MemberAssignment)
	}
	synced := g.Sync(c.ctx, sync)
	resp.ErrorCode = errorCode(synced.Err)
	resp.ProtocolType, resp.Protocol = nonEmpty(synced.Type), nonEmpty(synced.Protocol)
	resp.MemberAssignment = synced.Assignment
	return resp
}
