package kafka

import "github.com/twmb/franz-go/pkg/kmsg"

// endTxn commits or aborts a transaction. It goes on if the client's connection
// ends: the decision must not hang half made.
func (s *Server) endTxn(c *call, req *kmsg.EndTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	err := s.txns.end(c.conn.server.ctx, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit)
	resp.ErrorCode = fencedCode(err, c.version >= 2)
	return resp
}
