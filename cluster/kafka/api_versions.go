package kafka

import (
	"regexp"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// txnVersion is the version of transactions that clients are told to use.
const txnVersion = 2

// softwareName is what a client may call itself.
var softwareName = regexp.MustCompile(`^[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?$`)

// apiVersions answers with everything offered.
func (s *Server) apiVersions(c *call, req *kmsg.ApiVersionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	if resp.ErrorCode = s.checkClient(c.version, req); resp.ErrorCode != 0 {
		return resp
	}
	resp.ApiKeys = offered()
	supported := kmsg.NewApiVersionsResponseSupportedFeature()
	supported.Name, supported.MinVersion, supported.MaxVersion = "transaction.version", 0, txnVersion
	resp.SupportedFeatures = append(resp.SupportedFeatures, supported)
	final := kmsg.NewApiVersionsResponseFinalizedFeature()
	final.Name, final.MinVersionLevel, final.MaxVersionLevel = "transaction.version", txnVersion, txnVersion
	resp.FinalizedFeatures = append(resp.FinalizedFeatures, final)
	resp.FinalizedFeaturesEpoch = 1
	return resp
}

// checkClient refuses a client that has no proper name, or that takes this node
// for another one (KIP-1242).
func (s *Server) checkClient(version int16, req *kmsg.ApiVersionsRequest) int16 {
	if version >= 3 && (!softwareName.MatchString(req.ClientSoftwareName) || !softwareName.MatchString(req.ClientSoftwareVersion)) {
		return kerr.InvalidRequest.Code
	}
	if version < 5 || req.ClusterID == nil && req.NodeID == -1 {
		return 0
	}
	switch {
	case req.ClusterID == nil || req.NodeID == -1:
		return kerr.InvalidRequest.Code
	case *req.ClusterID != s.node.ClusterID() || req.NodeID != s.node.ID():
		return kerr.RebootstrapRequired.Code
	}
	return 0
}

// apiVersionsTooNew answers a version that is not known. The body is version 0's
// whatever was asked, with the ranges, so that the client can ask again.
func apiVersionsTooNew() kmsg.Response {
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.Version = 0
	resp.ErrorCode = kerr.UnsupportedVersion.Code
	resp.ApiKeys = offered()
	return resp
}

func offered() []kmsg.ApiVersionsResponseApiKey {
	var keys []kmsg.ApiVersionsResponseApiKey
	for _, key := range apiKeys() {
		k := kmsg.NewApiVersionsResponseApiKey()
		k.ApiKey, k.MinVersion, k.MaxVersion = key, apis[key].min, apis[key].max
		keys = append(keys, k)
	}
	return keys
}
