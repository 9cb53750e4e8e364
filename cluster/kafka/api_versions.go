package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// apiVersions answers with everything offered.
func (s *Server) apiVersions(_ *call, req *kmsg.ApiVersionsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ApiVersionsResponse)
	resp.ApiKeys = offered()
	return resp
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
