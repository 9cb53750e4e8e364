// Package configs turns a YAML file into typed values, strictly: each field is
// declared once, in one line, and from that line come decoding, default, check,
// documentation and JSON Schema.
//
// A section is a struct with a Fields method that lists its fields:
//
//	func (o *Options) Fields(f *configs.Fields) {
//		f.String(&o.Addr, "addr", "127.0.0.1:6379", "Address of the server, host:port.", configs.HostPort)
//		f.Duration(&o.Timeout, "timeout", 5*time.Second, "How long to wait for an answer.", configs.Positive)
//	}
//
// The third argument is the default; a field without one carries the rule Required.
package configs
