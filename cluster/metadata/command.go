package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/daybook-data/daybook/internal/strictjson"
)

// entryVersion is the form of a metadata log entry. A node that meets a later
// one stops: skipping what it does not know would make its state differ.
const entryVersion = 1

// entry is one entry of the metadata log: the commands that waited when it was
// proposed. JSON, because there are few of them (hundreds a second at most) and
// an operator can read a dump.
type entry struct {
	Version int `json:"v"`
	// Origin is missing where a node alone proposes: it never needs to send an entry again.
	Origin   *Origin   `json:"origin,omitempty"`
	Commands []Command `json:"commands"`
}

// Command is one change; exactly one field is set. Everything that differs from
// member to member (time, random ids) is decided by the proposer and stands in
// the command.
type Command struct {
	Found              *Found              `json:"found,omitempty"`
	CreateStream       *CreateStream       `json:"create_stream,omitempty"`
	GrowStream         *GrowStream         `json:"grow_stream,omitempty"`
	ConfigureStream    *ConfigureStream    `json:"configure_stream,omitempty"`
	TombstoneStream    *TombstoneStream    `json:"tombstone_stream,omitempty"`
	ForgetStream       *ForgetStream       `json:"forget_stream,omitempty"`
	CommitOffsets      *CommitOffsets      `json:"commit_offsets,omitempty"`
	DeleteOffsets      *DeleteOffsets      `json:"delete_offsets,omitempty"`
	DeleteGroup        *DeleteGroup        `json:"delete_group,omitempty"`
	KeepGroup          *KeepGroup          `json:"keep_group,omitempty"`
	ReserveProducerIDs *ReserveProducerIDs `json:"reserve_producer_ids,omitempty"`
	PutTransaction     *PutTransaction     `json:"put_transaction,omitempty"`
	JoinTransaction    *TxnJoin            `json:"join_transaction,omitempty"`
	ForgetTransaction  *ForgetTransaction  `json:"forget_transaction,omitempty"`
	PendTxnOffsets     *PendTxnOffsets     `json:"pend_txn_offsets,omitempty"`
	PutCredential      *PutCredential      `json:"put_credential,omitempty"`
	DeleteCredential   *DeleteCredential   `json:"delete_credential,omitempty"`
	PutSecret          *PutSecret          `json:"put_secret,omitempty"`
	CreateACLs         *CreateACLs         `json:"create_acls,omitempty"`
	DeleteACLs         *DeleteACLs         `json:"delete_acls,omitempty"`
	JoinCluster        *JoinCluster        `json:"join_cluster,omitempty"`
	PutMember          *PutMember          `json:"put_member,omitempty"`
	LeaveCluster       *LeaveCluster       `json:"leave_cluster,omitempty"`
	RemoveMember       *RemoveMember       `json:"remove_member,omitempty"`
	PlaceJournal       *PlaceJournal       `json:"place_journal,omitempty"`
	ReplaceReplica     *ReplaceReplica     `json:"replace_replica,omitempty"`
	DropReplica        *DropReplica        `json:"drop_replica,omitempty"`
	RecoverCluster     *RecoverCluster     `json:"recover_cluster,omitempty"`
	Mirror             *MirrorStreams      `json:"mirror,omitempty"`
}

// Found gives a new cluster its name.
type Found struct {
	ClusterID string `json:"cluster_id"`
}

// Result is what one command gave: a value, or why it was refused.
type Result struct {
	Value any
	Err   error
}

// EncodeEntry writes the commands as one entry of the log; without an origin it takes effect each time that it comes.
func EncodeEntry(o *Origin, commands []Command) ([]byte, error) {
	data, err := json.Marshal(entry{Version: entryVersion, Origin: o, Commands: commands})
	if err != nil {
		return nil, fmt.Errorf("encoding metadata entry: %w", err)
	}
	return data, nil
}

func decodeEntry(data []byte) (*entry, error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	if head.Version != entryVersion {
		return nil, fmt.Errorf("entry has version %d, this build knows %d: run the build that wrote it, or a later one", head.Version, entryVersion)
	}
	var e entry
	if err := strictjson.Decode(data, &e); err != nil {
		return nil, err
	}
	for _, c := range e.Commands {
		if reflect.ValueOf(c).IsZero() {
			return nil, errors.New("command without content")
		}
	}
	return &e, nil
}
