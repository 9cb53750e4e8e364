package kafka

import (
	"bytes"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/kafka/membership"
)

// joinGroup makes the client a member and answers when its generation begins.
func (s *Server) joinGroup(c *call, req *kmsg.JoinGroupRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
	resp.Generation, resp.MemberID = -1, req.MemberID
	err := c.group(kmsg.ACLOperationRead, req.Group)
	var g *membership.Group
	if err == nil {
		g, err = s.groupToJoin(req.Group)
	}
	if err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	joined := g.Join(c.ctx, joinOf(c, req))
	resp.ErrorCode = errorCode(joined.Err)
	if joined.MemberID != "" {
		resp.MemberID = joined.MemberID
	}
	if joined.Err != nil {
		return resp
	}
	resp.Protocol, resp.ProtocolType = &joined.Protocol, &joined.Type
	resp.Generation, resp.LeaderID, resp.SkipAssignment = joined.Generation, joined.Leader, joined.SkipAssignment
	for _, m := range joined.Members {
		member := kmsg.NewJoinGroupResponseMember()
		member.MemberID, member.InstanceID, member.ProtocolMetadata = m.ID, nonEmpty(m.InstanceID), m.Metadata
		resp.Members = append(resp.Members, member)
	}
	return resp
}

// groupToJoin returns the group if this node coordinates it.
func (s *Server) groupToJoin(id string) (*membership.Group, error) {
	epoch, err := s.coordinate()
	if err != nil {
		return nil, err
	}
	return s.groups.get(epoch, id)
}

// joinOf copies what the group keeps: the request's bytes are used again.
func joinOf(c *call, req *kmsg.JoinGroupRequest) membership.Join {
	j := membership.Join{
		MemberID:   req.MemberID,
		InstanceID: orEmpty(req.InstanceID),
		ClientID:   c.client,
		Host:       hostOf(c.conn.net),
		Session:    time.Duration(req.SessionTimeoutMillis) * time.Millisecond,
		Rebalance:  time.Duration(req.RebalanceTimeoutMillis) * time.Millisecond,
		Type:       req.ProtocolType,
		RequireID:  c.version >= 4,
		CanSkip:    c.version >= 9,
	}
	for _, p := range req.Protocols {
		j.Protocols = append(j.Protocols, membership.Protocol{Name: p.Name, Metadata: bytes.Clone(p.Metadata)})
	}
	return j
}

func hostOf(c net.Conn) string {
	host, _, err := net.SplitHostPort(c.RemoteAddr().String())
	if err != nil {
		return "/in-process"
	}
	return "/" + host
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func nonEmpty(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
