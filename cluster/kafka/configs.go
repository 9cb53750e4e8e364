package kafka

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
)

// source says where a setting's value comes from.
func source(stream *metadata.Stream, name string) kmsg.ConfigSource {
	if _, given := stream.Config[name]; given {
		return kmsg.ConfigSourceDynamicTopicConfig
	}
	return kmsg.ConfigSourceDefaultConfig
}

// mostReplicas is how many replicas a stream gets if nobody says, where there are as many
// nodes.
const mostReplicas = 3

// minInSync is Kafka's name for how many replicas have a record before it is acknowledged.
const minInSync = "min.insync.replicas"

// setting returns the value of a stream's setting. As many replicas as make a majority have
// a record before its producer hears of it, whatever is set: so that is the default.
func (s *Server) setting(stream *metadata.Stream, name string) string {
	if _, given := stream.Config[name]; name == minInSync && !given {
		return strconv.Itoa(max(int(s.replicationFactor(stream)), 1)/2 + 1)
	}
	return stream.Value(name)
}

// describeConfigs answers with every setting of a stream, defaults included, or
// with those of this node.
func (s *Server) describeConfigs(c *call, req *kmsg.DescribeConfigsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
	for _, r := range req.Resources {
		resource := kmsg.NewDescribeConfigsResponseResource()
		resource.ResourceType, resource.ResourceName = r.ResourceType, r.ResourceName
		var configs []kmsg.DescribeConfigsResponseResourceConfig
		err := c.mayConfigure(kmsg.ACLOperationDescribeConfigs, r.ResourceType, r.ResourceName)
		if err == nil {
			configs, err = s.configsOf(r, req)
		}
		resource.ErrorCode, resource.ErrorMessage = errorCode(err), errorText(err)
		for _, config := range configs {
			if r.ConfigNames == nil || slices.Contains(r.ConfigNames, config.Name) {
				resource.Configs = append(resource.Configs, config)
			}
		}
		resp.Resources = append(resp.Resources, resource)
	}
	return resp
}

// mayConfigure refuses what the ACLs of a topic or, for all else, of the cluster do
// not allow.
func (c *call) mayConfigure(op kmsg.ACLOperation, kind kmsg.ConfigResourceType, name string) error {
	if kind == kmsg.ConfigResourceTypeTopic {
		return c.topic(op, name)
	}
	return c.cluster(op)
}

func (s *Server) configsOf(r kmsg.DescribeConfigsRequestResource, req *kmsg.DescribeConfigsRequest) ([]kmsg.DescribeConfigsResponseResourceConfig, error) {
	switch r.ResourceType {
	case kmsg.ConfigResourceTypeTopic:
		stream, ok := s.node.Meta().Stream(r.ResourceName)
		if !ok {
			return nil, kerr.UnknownTopicOrPartition
		}
		return s.topicConfigs(stream, req), nil
	case kmsg.ConfigResourceTypeBroker:
		if r.ResourceName != "" && r.ResourceName != strconv.Itoa(int(s.node.ID())) {
			return nil, kerr.InvalidRequest
		}
		return s.brokerConfigs(), nil
	}
	return nil, kerr.InvalidRequest
}

func (s *Server) topicConfigs(stream *metadata.Stream, req *kmsg.DescribeConfigsRequest) []kmsg.DescribeConfigsResponseResourceConfig {
	var configs []kmsg.DescribeConfigsResponseResourceConfig
	for _, setting := range metadata.Settings() {
		config := kmsg.NewDescribeConfigsResponseResourceConfig()
		config.Name, config.Value = setting.Name, kmsg.StringPtr(s.setting(stream, setting.Name))
		config.Source = source(stream, setting.Name)
		config.IsDefault = config.Source == kmsg.ConfigSourceDefaultConfig
		config.ConfigType = kmsg.ConfigType(setting.Kind)
		config.ReadOnly = setting.Name == metadata.SettingJournals || setting.Name == metadata.SettingDurability
		if req.IncludeDocumentation {
			config.Documentation = kmsg.StringPtr(setting.Doc)
		}
		if req.IncludeSynonyms {
			synonym := kmsg.NewDescribeConfigsResponseResourceConfigConfigSynonym()
			synonym.Name, synonym.Value, synonym.Source = config.Name, config.Value, config.Source
			config.ConfigSynonyms = append(config.ConfigSynonyms, synonym)
		}
		configs = append(configs, config)
	}
	return configs
}

// brokerConfigs is what tools ask a broker for, as it is here.
func (s *Server) brokerConfigs() []kmsg.DescribeConfigsResponseResourceConfig {
	var configs []kmsg.DescribeConfigsResponseResourceConfig
	for name, value := range map[string]string{
		"auto.create.topics.enable":        strconv.FormatBool(!s.opts.NoAutoCreate),
		"num.partitions":                   strconv.Itoa(int(s.opts.AutoPartitions)),
		"default.replication.factor":       strconv.Itoa(min(len(s.node.Members()), mostReplicas)),
		"max.connections":                  strconv.Itoa(s.opts.MaxConnections),
		"message.max.bytes":                strconv.Itoa(metadata.MaxBatchBytes),
		"socket.request.max.bytes":         strconv.Itoa(s.opts.MaxRequestBytes),
		"offset.metadata.max.bytes":        strconv.Itoa(maxOffsetMetadata),
		"transaction.max.timeout.ms":       strconv.Itoa(int(maxTxnTimeout.Milliseconds())),
		"group.initial.rebalance.delay.ms": strconv.Itoa(int(s.opts.RebalanceDelay.Milliseconds())),
	} {
		config := kmsg.NewDescribeConfigsResponseResourceConfig()
		config.Name, config.Value, config.ReadOnly = name, kmsg.StringPtr(value), true
		config.Source = kmsg.ConfigSourceStaticBrokerConfig
		configs = append(configs, config)
	}
	slices.SortFunc(configs, func(a, b kmsg.DescribeConfigsResponseResourceConfig) int { return cmp.Compare(a.Name, b.Name) })
	return configs
}
