package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// addOffsetsToTxn names a group whose offsets will be committed with a
// transaction.
func (s *Server) addOffsetsToTxn(c *call, req *kmsg.AddOffsetsToTxnRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AddOffsetsToTxnResponse)
	if !validGroup(req.Group) {
		resp.ErrorCode = kerr.InvalidGroupID.Code
		return resp
	}
	err := c.txn(kmsg.ACLOperationWrite, req.TransactionalID)
	if err == nil {
		err = c.group(kmsg.ACLOperationRead, req.Group)
	}
	if err != nil {
		resp.ErrorCode = errorCode(err)
		return resp
	}
	err = s.txns.add(c.conn.server.ctx, req.TransactionalID, req.ProducerID, req.ProducerEpoch, nil, []string{req.Group})
	resp.ErrorCode = fencedCode(err, c.version >= 2)
	return resp
}
