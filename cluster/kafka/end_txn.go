package kafka

import "github.com/twmb/franz-go/pkg/kmsg"

// endTxn commits or aborts a transaction. It goes on if the client's connection
// ends: the decision must not hang half made. From version 5 on the answer has the
// epoch under which the producer goes on (KIP-890).
func (s *Server) endTxn(c *call, req *kmsg.EndTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.EndTxnResponse)
	resp.ProducerID, resp.ProducerEpoch = -1, -1
	if err := c.txn(kmsg.ACLOperationWrite, req.TransactionalID); err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	if c.version < 5 {
		err := s.txns.end(c.conn.server.ctx, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit)
		resp.ErrorCode = fencedCode(coordinatorCode(err), c.version >= 2)
		return resp
	}
	t, err := s.txns.endAndBump(c.conn.server.ctx, req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit)
	if err == nil {
		resp.ProducerID, resp.ProducerEpoch = t.ProducerID, t.Epoch
	}
	resp.ErrorCode = fencedCode(coordinatorCode(err), true)
	return resp
}
