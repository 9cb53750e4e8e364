package kafka

import (
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster"
	"github.com/daybook-data/daybook/cluster/metadata"
)

// alterConfigs replaces all settings of streams by those given.
func (s *Server) alterConfigs(c *call, req *kmsg.AlterConfigsRequest) kmsg.Response {
	defer c.within(0)()
	resp := req.ResponseKind().(*kmsg.AlterConfigsResponse)
	for _, r := range req.Resources {
		resource := kmsg.NewAlterConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = r.ResourceType, r.ResourceName
		change := cluster.ConfigChange{Set: map[string]string{}, Replace: true}
		for _, config := range r.Configs {
			if config.Value != nil {
				change.Set[config.Name] = *config.Value
			}
		}
		err := s.alter(c, r.ResourceType, r.ResourceName, change, req.ValidateOnly)
		resource.ErrorCode, resource.ErrorMessage = errorCode(err), errorText(err)
		resp.Resources = append(resp.Resources, resource)
	}
	return resp
}

// incrementalAlterConfigs sets, removes, extends and shortens single settings.
func (s *Server) incrementalAlterConfigs(c *call, req *kmsg.IncrementalAlterConfigsRequest) kmsg.Response {
	defer c.within(0)()
	resp := req.ResponseKind().(*kmsg.IncrementalAlterConfigsResponse)
	for _, r := range req.Resources {
		resource := kmsg.NewIncrementalAlterConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = r.ResourceType, r.ResourceName
		change, err := s.incremental(r)
		if err == nil {
			err = s.alter(c, r.ResourceType, r.ResourceName, change, req.ValidateOnly)
		}
		resource.ErrorCode, resource.ErrorMessage = errorCode(err), errorText(err)
		resp.Resources = append(resp.Resources, resource)
	}
	return resp
}

func (s *Server) alter(c *call, kind kmsg.ConfigResourceType, name string, change cluster.ConfigChange, validateOnly bool) error {
	if err := c.mayConfigure(kmsg.ACLOperationAlterConfigs, kind, name); err != nil {
		return err
	}
	if kind != kmsg.ConfigResourceTypeTopic {
		return fmt.Errorf("%w: only a topic's settings can be altered", kerr.InvalidRequest)
	}
	stream, err := s.knownName(c.ctx, name)
	if err != nil {
		return err
	}
	change.ValidateOnly = validateOnly
	return s.node.ConfigureStream(c.ctx, stream.ID, change)
}

// incremental turns operations on single settings into one change.
func (s *Server) incremental(r kmsg.IncrementalAlterConfigsRequestResource) (cluster.ConfigChange, error) {
	change := cluster.ConfigChange{Set: map[string]string{}}
	stream, _ := s.node.Meta().Stream(r.ResourceName) // alter refuses one that is not there
	seen := map[string]bool{}
	for _, config := range r.Configs {
		if seen[config.Name] {
			return change, fmt.Errorf("%w: %s is named twice", kerr.InvalidRequest, config.Name)
		}
		seen[config.Name] = true
		value := orEmpty(config.Value)
		switch config.Op {
		case kmsg.IncrementalAlterConfigOpSet:
			if config.Value == nil {
				return change, fmt.Errorf("%w: %s has no value", kerr.InvalidConfig, config.Name)
			}
			change.Set[config.Name] = value
		case kmsg.IncrementalAlterConfigOpDelete:
			change.Delete = append(change.Delete, config.Name)
		case kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract:
			setting, ok := metadata.FindSetting(config.Name)
			if !ok || setting.Kind != metadata.KindList || stream == nil {
				return change, fmt.Errorf("%w: %s is no list", kerr.InvalidConfig, config.Name)
			}
			change.Set[config.Name] = editList(stream.Value(config.Name), value, config.Op)
		default:
			return change, fmt.Errorf("%w: operation %d", kerr.InvalidRequest, config.Op)
		}
	}
	return change, nil
}

// editList adds items to a list, or takes them out of it.
func editList(list, items string, op kmsg.IncrementalAlterConfigOp) string {
	current := slices.DeleteFunc(strings.Split(list, ","), func(item string) bool { return item == "" })
	for item := range strings.SplitSeq(items, ",") {
		current = slices.DeleteFunc(current, func(old string) bool { return old == item })
		if op == kmsg.IncrementalAlterConfigOpAppend {
			current = append(current, item)
		}
	}
	return strings.Join(current, ",")
}
