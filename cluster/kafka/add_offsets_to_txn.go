package kafka

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/daybook-data/daybook/cluster/metadata"
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
	err = s.txns.add(s.ctx, metadata.TxnJoin{ID: req.TransactionalID, ProducerID: req.ProducerID, Epoch: req.ProducerEpoch, Groups: []string{req.Group}})
	resp.ErrorCode = fencedCode(coordinatorCode(err), c.version >= 2)
	return resp
}
