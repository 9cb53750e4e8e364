package kafka

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// binding is an ACL in the protocol's numbers.
type binding struct {
	resource   kmsg.ACLResourceType
	pattern    kmsg.ACLResourcePatternType
	operation  kmsg.ACLOperation
	permission kmsg.ACLPermissionType
	acl        metadata.ACL
}

// bindingOf reads an ACL of the metadata. Words that a later build has written stay
// unknown numbers, which concern nothing.
func bindingOf(a metadata.ACL) binding {
	b := binding{acl: a}
	b.resource, _ = kmsg.ParseACLResourceType(a.Resource)
	b.pattern, _ = kmsg.ParseACLResourcePatternType(a.Pattern)
	b.operation, _ = kmsg.ParseACLOperation(a.Operation)
	b.permission, _ = kmsg.ParseACLPermissionType(a.Permission)
	return b
}

// createACLs adds ACLs, those that are proper.
func (s *Server) createACLs(c *call, req *kmsg.CreateACLsRequest) kmsg.Response {
	defer c.within(0)()
	resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
	refused := s.mayKeepACLs(c, kmsg.ACLOperationAlter)
	var acls []metadata.ACL
	results := make([]error, len(req.Creations))
	for i, creation := range req.Creations {
		if results[i] = refused; refused == nil {
			results[i] = checkACL(creation)
		}
		if results[i] == nil {
			acls = append(acls, metadata.ACL{
				Resource: creation.ResourceType.String(), Name: creation.ResourceName, Pattern: creation.ResourcePatternType.String(),
				Principal: creation.Principal, Host: creation.Host,
				Operation: creation.Operation.String(), Permission: creation.PermissionType.String(),
			})
		}
	}
	var failed error
	if len(acls) > 0 {
		failed = s.node.CreateACLs(c.ctx, acls)
	}
	for _, err := range results {
		if err == nil {
			err = failed
		}
		result := kmsg.NewCreateACLsResponseResult()
		result.ErrorCode, result.ErrorMessage = errorCode(err), errorText(err)
		resp.Results = append(resp.Results, result)
	}
	return resp
}

// mayKeepACLs refuses the requests about ACLs where nobody asks for them: an ACL
// that looks as if it protected something, and does not, is worse than none.
func (s *Server) mayKeepACLs(c *call, op kmsg.ACLOperation) error {
	if s.auth == nil {
		return fmt.Errorf("%w: this server has no authorization; its file turns it on", kerr.SecurityDisabled)
	}
	return c.cluster(op)
}

func checkACL(c kmsg.CreateACLsRequestCreation) error {
	kind, name, found := strings.Cut(c.Principal, ":")
	switch {
	case len(operations[c.ResourceType]) == 0:
		return fmt.Errorf("%w: resource type %v", kerr.InvalidRequest, c.ResourceType)
	case c.ResourcePatternType != kmsg.ACLResourcePatternTypeLiteral && c.ResourcePatternType != kmsg.ACLResourcePatternTypePrefixed:
		return fmt.Errorf("%w: pattern type %v", kerr.InvalidRequest, c.ResourcePatternType)
	case c.Operation != kmsg.ACLOperationAll && !slices.Contains(operations[c.ResourceType], c.Operation):
		return fmt.Errorf("%w: %v has no operation %v", kerr.InvalidRequest, c.ResourceType, c.Operation)
	case c.PermissionType != kmsg.ACLPermissionTypeAllow && c.PermissionType != kmsg.ACLPermissionTypeDeny:
		return fmt.Errorf("%w: permission type %v", kerr.InvalidRequest, c.PermissionType)
	case c.ResourceName == "" || len(c.ResourceName) > 1024:
		return fmt.Errorf("%w: the resource has no proper name", kerr.InvalidRequest)
	case c.ResourceType == kmsg.ACLResourceTypeCluster && c.ResourceName != clusterName:
		return fmt.Errorf("%w: the only cluster is %s", kerr.InvalidRequest, clusterName)
	case !found || kind == "" || name == "" || len(c.Principal) > 1024:
		return fmt.Errorf("%w: principal %q is not of the form User:NAME", kerr.InvalidRequest, c.Principal)
	case c.Host == "" || len(c.Host) > 256:
		return fmt.Errorf("%w: host %q: an address, or * for all", kerr.InvalidRequest, c.Host)
	}
	return nil
}

// aclFilter selects ACLs; nil fields match all.
type aclFilter struct {
	resource              kmsg.ACLResourceType
	pattern               kmsg.ACLResourcePatternType
	operation             kmsg.ACLOperation
	permission            kmsg.ACLPermissionType
	name, principal, host *string
}

func (f aclFilter) check() error {
	if f.resource == kmsg.ACLResourceTypeUnknown || f.pattern == kmsg.ACLResourcePatternTypeUnknown ||
		f.operation == kmsg.ACLOperationUnknown || f.permission == kmsg.ACLPermissionTypeUnknown {
		return fmt.Errorf("%w: the filter has a kind that is not known", kerr.InvalidRequest)
	}
	return nil
}

func (f aclFilter) matches(b binding) bool {
	is := func(want *string, got string) bool { return want == nil || *want == got }
	return (f.resource == kmsg.ACLResourceTypeAny || f.resource == b.resource) &&
		(f.operation == kmsg.ACLOperationAny || f.operation == b.operation) &&
		(f.permission == kmsg.ACLPermissionTypeAny || f.permission == b.permission) &&
		is(f.principal, b.acl.Principal) && is(f.host, b.acl.Host) && f.matchesName(b)
}

func (f aclFilter) matchesName(b binding) bool {
	if f.pattern != kmsg.ACLResourcePatternTypeAny && f.pattern != kmsg.ACLResourcePatternTypeMatch && f.pattern != b.pattern {
		return false
	}
	if f.name == nil || *f.name == b.acl.Name {
		return true
	}
	if f.pattern != kmsg.ACLResourcePatternTypeMatch { // which finds whatever would be asked for the name
		return false
	}
	if b.pattern == kmsg.ACLResourcePatternTypePrefixed {
		return strings.HasPrefix(*f.name, b.acl.Name)
	}
	return b.acl.Name == "*"
}

// find returns the ACLs that a filter selects, sorted.
func (s *Server) findACLs(f aclFilter) []binding {
	var found []binding
	acls, _ := s.node.Meta().ACLs()
	for _, a := range acls {
		if b := bindingOf(a); f.matches(b) {
			found = append(found, b)
		}
	}
	return found
}

// describeACLs lists ACLs, by resource.
func (s *Server) describeACLs(c *call, req *kmsg.DescribeACLsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeACLsResponse)
	f := aclFilter{
		req.ResourceType, req.ResourcePatternType, req.Operation, req.PermissionType,
		req.ResourceName, req.Principal, req.Host,
	}
	err := s.mayKeepACLs(c, kmsg.ACLOperationDescribe)
	if err == nil {
		err = f.check()
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = errorCode(err), errorText(err)
		return resp
	}
	for _, b := range s.findACLs(f) {
		last := len(resp.Resources) - 1
		if last < 0 || resp.Resources[last].ResourceType != b.resource || resp.Resources[last].ResourceName != b.acl.Name || resp.Resources[last].ResourcePatternType != b.pattern {
			r := kmsg.NewDescribeACLsResponseResource()
			r.ResourceType, r.ResourceName, r.ResourcePatternType = b.resource, b.acl.Name, b.pattern
			resp.Resources = append(resp.Resources, r)
			last++
		}
		acl := kmsg.NewDescribeACLsResponseResourceACL()
		acl.Principal, acl.Host, acl.Operation, acl.PermissionType = b.acl.Principal, b.acl.Host, b.operation, b.permission
		resp.Resources[last].ACLs = append(resp.Resources[last].ACLs, acl)
	}
	return resp
}

// deleteACLs removes what filters select.
func (s *Server) deleteACLs(c *call, req *kmsg.DeleteACLsRequest) kmsg.Response {
	defer c.within(0)()
	resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
	refused := s.mayKeepACLs(c, kmsg.ACLOperationAlter)
	for _, asked := range req.Filters {
		f := aclFilter{
			asked.ResourceType, asked.ResourcePatternType, asked.Operation, asked.PermissionType,
			asked.ResourceName, asked.Principal, asked.Host,
		}
		result := kmsg.NewDeleteACLsResponseResult()
		err := refused
		if err == nil {
			err = f.check()
		}
		if err == nil {
			result.MatchingACLs, err = s.deleteMatching(c, f)
		}
		result.ErrorCode, result.ErrorMessage = errorCode(err), errorText(err)
		resp.Results = append(resp.Results, result)
	}
	return resp
}

func (s *Server) deleteMatching(c *call, f aclFilter) ([]kmsg.DeleteACLsResponseResultMatchingACL, error) {
	found := s.findACLs(f)
	if len(found) == 0 {
		return nil, nil
	}
	var acls []metadata.ACL
	var matching []kmsg.DeleteACLsResponseResultMatchingACL
	for _, b := range found {
		acls = append(acls, b.acl)
		m := kmsg.NewDeleteACLsResponseResultMatchingACL()
		m.ResourceType, m.ResourceName, m.ResourcePatternType = b.resource, b.acl.Name, b.pattern
		m.Principal, m.Host, m.Operation, m.PermissionType = b.acl.Principal, b.acl.Host, b.operation, b.permission
		matching = append(matching, m)
	}
	if err := s.node.DeleteACLs(c.ctx, acls); err != nil {
		return nil, err
	}
	return matching, nil
}
