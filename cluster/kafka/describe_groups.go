package kafka

import (
	"fmt"
	"math"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// describeGroups answers with the members of groups. A group that nobody knows
// is "Dead", which is no error before version 6.
func (s *Server) describeGroups(c *call, req *kmsg.DescribeGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	for _, id := range req.Groups {
		group := kmsg.NewDescribeGroupsResponseGroup()
		group.Group, group.AuthorizedOperations = id, math.MinInt32
		epoch, err := s.coordinate()
		if denied := c.group(kmsg.ACLOperationDescribe, id); denied != nil {
			err = denied
		}
		if err != nil {
			group.ErrorCode = errorCode(err)
			resp.Groups = append(resp.Groups, group)
			continue
		}
		if req.IncludeAuthorizedOperations {
			group.AuthorizedOperations = c.authorized(kmsg.ACLResourceTypeGroup, id)
		}
		d := s.describeGroup(epoch, id)
		if d.State == "Dead" && c.version >= 6 {
			err := fmt.Errorf("%w: group %s", kerr.GroupIDNotFound, id)
			group.ErrorCode, group.ErrorMessage = errorCode(err), errorText(err)
		}
		group.State, group.ProtocolType, group.Protocol = string(d.State), d.Type, d.Protocol
		for _, m := range d.Members {
			member := kmsg.NewDescribeGroupsResponseGroupMember()
			member.MemberID, member.InstanceID = m.ID, nonEmpty(m.InstanceID)
			member.ClientID, member.ClientHost = m.ClientID, m.Host
			member.ProtocolMetadata, member.MemberAssignment = m.Metadata, m.Assignment
			group.Members = append(group.Members, member)
		}
		resp.Groups = append(resp.Groups, group)
	}
	return resp
}

func (s *Server) describeGroup(epoch uint64, id string) membership.Description {
	if g, ok := s.groups.find(epoch, id); ok {
		if d := g.Describe(); d.State != membership.Empty || s.node.Meta().HasGroup(id) {
			return d
		}
	} else if s.node.Meta().HasGroup(id) {
		return membership.Description{State: membership.Empty}
	}
	return membership.Description{State: "Dead"}
}
