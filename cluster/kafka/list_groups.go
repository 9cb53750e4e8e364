package kafka

import (
	"maps"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// listGroups answers with every group that has members or offsets.
func (s *Server) listGroups(_ *call, req *kmsg.ListGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	ids := map[string]struct{}{}
	for _, id := range s.node.Meta().Groups() {
		ids[id] = struct{}{}
	}
	for id := range s.groups.all() {
		ids[id] = struct{}{}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		d := s.describeGroup(id)
		wanted := len(req.StatesFilter) == 0 || slices.ContainsFunc(req.StatesFilter, func(state string) bool {
			return strings.EqualFold(state, string(d.State))
		})
		if d.State == "Dead" || !wanted {
			continue
		}
		group := kmsg.NewListGroupsResponseGroup()
		group.Group, group.ProtocolType, group.GroupState = id, d.Type, string(d.State)
		resp.Groups = append(resp.Groups, group)
	}
	return resp
}
