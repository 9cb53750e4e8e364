package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
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
	Origin   *origin   `json:"origin,omitempty"`
	Commands []command `json:"commands"`
}

// command is one change; exactly one field is set. Everything that differs from
// member to member (time, random ids) is decided by the proposer and stands in
// the command.
type command struct {
	Found              *found              `json:"found,omitempty"`
	CreateStream       *createStream       `json:"create_stream,omitempty"`
	GrowStream         *growStream         `json:"grow_stream,omitempty"`
	ConfigureStream    *configureStream    `json:"configure_stream,omitempty"`
	TombstoneStream    *tombstoneStream    `json:"tombstone_stream,omitempty"`
	ForgetStream       *forgetStream       `json:"forget_stream,omitempty"`
	CommitOffsets      *commitOffsets      `json:"commit_offsets,omitempty"`
	DeleteOffsets      *deleteOffsets      `json:"delete_offsets,omitempty"`
	DeleteGroup        *deleteGroup        `json:"delete_group,omitempty"`
	KeepGroup          *keepGroup          `json:"keep_group,omitempty"`
	ReserveProducerIDs *reserveProducerIDs `json:"reserve_producer_ids,omitempty"`
	PutTransaction     *putTransaction     `json:"put_transaction,omitempty"`
	JoinTransaction    *TxnJoin            `json:"join_transaction,omitempty"`
	ForgetTransaction  *forgetTransaction  `json:"forget_transaction,omitempty"`
	PendTxnOffsets     *pendTxnOffsets     `json:"pend_txn_offsets,omitempty"`
	PutCredential      *putCredential      `json:"put_credential,omitempty"`
	DeleteCredential   *deleteCredential   `json:"delete_credential,omitempty"`
	PutSecret          *putSecret          `json:"put_secret,omitempty"`
	CreateACLs         *createACLs         `json:"create_acls,omitempty"`
	DeleteACLs         *deleteACLs         `json:"delete_acls,omitempty"`
	JoinCluster        *joinCluster        `json:"join_cluster,omitempty"`
	PutMember          *putMember          `json:"put_member,omitempty"`
	LeaveCluster       *leaveCluster       `json:"leave_cluster,omitempty"`
	RemoveMember       *removeMember       `json:"remove_member,omitempty"`
	PlaceJournal       *placeJournal       `json:"place_journal,omitempty"`
	ReplaceReplica     *replaceReplica     `json:"replace_replica,omitempty"`
	DropReplica        *dropReplica        `json:"drop_replica,omitempty"`
	TrimStream         *trimStream         `json:"trim_stream,omitempty"`
	RecoverCluster     *recoverCluster     `json:"recover_cluster,omitempty"`
	Mirror             *mirrorStreams      `json:"mirror,omitempty"`
}

// found gives a new cluster its name.
type found struct {
	ClusterID string `json:"cluster_id"`
}

// result is what one command gave: a value, or why it was refused.
type result struct {
	value any
	err   error
}

func encodeEntry(o *origin, commands []command) ([]byte, error) {
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
	if err := strictJSON(data, &e); err != nil {
		return nil, err
	}
	for _, c := range e.Commands {
		if reflect.ValueOf(c).IsZero() {
			return nil, errors.New("command without content")
		}
	}
	return &e, nil
}

// strictJSON decodes one JSON value and refuses fields that v does not have.
func strictJSON(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the value")
	}
	return nil
}
