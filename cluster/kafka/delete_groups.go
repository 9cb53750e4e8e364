package kafka

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// deleteGroups forgets groups without members, with their offsets. That also
// ends their hold on retention.
func (s *Server) deleteGroups(c *call, req *kmsg.DeleteGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	for _, id := range req.Groups {
		group := kmsg.NewDeleteGroupsResponseGroup()
		group.Group = id
		group.ErrorCode = coordinatorCode(s.deleteGroup(c, id))
		resp.Groups = append(resp.Groups, group)
	}
	return resp
}

func (s *Server) deleteGroup(c *call, id string) error {
	if err := c.group(kmsg.ACLOperationDelete, id); err != nil {
		return err
	}
	epoch, err := s.coordinate()
	if err != nil {
		return err
	}
	_, inMemory := s.groups.find(epoch, id)
	if !s.groups.drop(id) {
		return kerr.NonEmptyGroup
	}
	ctx, cancel := c.soon()
	defer cancel()
	err = s.node.DeleteGroup(ctx, epoch, id)
	if inMemory && errors.Is(err, metadata.ErrUnknownGroup) {
		return nil // it had no offsets
	}
	return err
}
