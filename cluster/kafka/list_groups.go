package kafka

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// classicGroup is the kind of group whose members assign partitions themselves.
const classicGroup = "classic"

// listGroups answers with every group that has members or offsets, if this node
// coordinates: clients ask all nodes, and put together what they hear.
func (s *Server) listGroups(c *call, req *kmsg.ListGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	epoch, err := s.coordinate()
	if errors.Is(err, kerr.NotCoordinator) {
		return resp
	}
	if err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	all := c.cluster(kmsg.ACLOperationDescribe) == nil
	ids := map[string]struct{}{}
	for _, id := range s.node.Meta().Groups() {
		ids[id] = struct{}{}
	}
	for id := range s.groups.all() {
		ids[id] = struct{}{}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		d := s.describeGroup(epoch, id)
		wanted := len(req.StatesFilter) == 0 || slices.ContainsFunc(req.StatesFilter, func(state string) bool {
			return strings.EqualFold(state, string(d.State))
		})
		// Every group is a classic one.
		wanted = wanted && (len(req.TypesFilter) == 0 || slices.ContainsFunc(req.TypesFilter, func(kind string) bool {
			return strings.EqualFold(kind, classicGroup)
		}))
		if d.State == "Dead" || !wanted || !all && c.group(kmsg.ACLOperationDescribe, id) != nil {
			continue
		}
		group := kmsg.NewListGroupsResponseGroup()
		group.Group, group.ProtocolType, group.GroupState, group.GroupType = id, d.Type, string(d.State), classicGroup
		resp.Groups = append(resp.Groups, group)
	}
	return resp
}
