package recovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/daybook-data/daybook/cluster/datadir"
	"github.com/daybook-data/daybook/cluster/metadata"
	"github.com/daybook-data/daybook/cluster/raftgroup"
	"github.com/daybook-data/daybook/internal/strictjson"
	"github.com/daybook-data/daybook/internal/vfs"
	"github.com/daybook-data/daybook/storage"
)

// fileName is in a node's directory while a recovery is under way there: the plan, under a checksum. A node does
// not start as long as it is there, and whoever recovers again goes on with it.
const fileName = "recovery.json"

// sealedPlan is the file.
type sealedPlan struct {
	CRC  string          `json:"crc32c"`
	Plan json.RawMessage `json:"plan"`
}

// Begun returns the plan of a recovery that was begun in a node's directory and not finished; nil if there is none.
func Begun(fsys vfs.FS, dir string) (*Plan, error) {
	path := filepath.Join(dir, fileName)
	b, err := vfs.ReadFile(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var sealed sealedPlan
	var p Plan
	err = strictjson.Decode(b, &sealed)
	if err == nil && sealed.CRC != strictjson.Checksum(sealed.Plan) {
		err = fmt.Errorf("its checksum is %s, the content has %s", sealed.CRC, strictjson.Checksum(sealed.Plan))
	}
	if err == nil {
		err = strictjson.Decode(sealed.Plan, &p)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return &p, nil
}

// RefuseUnfinished is an error if the directory is half of what it was and half of what it is to be.
func RefuseUnfinished(d datadir.Dir) error {
	p, err := Begun(d.FS, d.Path)
	if err == nil && p != nil {
		err = fmt.Errorf("%w: finish it with daybook cluster recover --data %s --accept-loss", ErrBegun, d.Path)
	}
	return err
}

// Apply makes a node's directory go on as the plan says. It may be cut off at any moment: called again it goes on, with
// the plan that it was begun with. Nothing is deleted: copies that do not go on are moved into a folder set-aside-N within
// the directory. No process may have it open.
func Apply(fsys vfs.FS, dir string, plan *Plan, log *slog.Logger) (err error) {
	lock, err := datadir.Dir{FS: fsys, Path: dir}.Lock()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	begun, err := Begun(fsys, dir)
	if err != nil {
		return err
	}
	r := recovery{Dir: datadir.Dir{FS: fsys, Path: dir}, plan: begun, log: log}
	if r.file, _, err = datadir.OpenFile(fsys, dir); err != nil {
		return err
	}
	if me := r.file.Get(); begun == nil && me.Cluster == plan.Cluster && me.Generation == plan.Generation {
		return nil // it was finished
	}
	if begun == nil {
		r.plan = plan
		if err := r.begin(); err != nil {
			return err
		}
	}
	return r.finish()
}

// recovery is one that is carried out.
type recovery struct {
	datadir.Dir
	plan *Plan
	file *datadir.File
	log  *slog.Logger
}

// begin writes the plan down.
func (r *recovery) begin() error {
	me := r.file.Get()
	if me.Cluster != r.plan.Cluster || me.Generation+1 != r.plan.Generation || !slices.Contains(r.plan.Survivors, me.Node) {
		return fmt.Errorf("the plan is for nodes %v of cluster %s to go on as generation %d; %s is of node %d of cluster %s, generation %d",
			r.plan.Survivors, r.plan.Cluster, r.plan.Generation, r.Path, me.Node, me.Cluster, me.Generation)
	}
	plan, err := json.Marshal(r.plan)
	if err != nil {
		return err
	}
	b, err := json.Marshal(sealedPlan{CRC: strictjson.Checksum(plan), Plan: plan})
	if err != nil {
		return err
	}
	return vfs.WriteFile(r.FS, filepath.Join(r.Path, fileName), append(b, '\n'), 0o644)
}

// finish takes all steps of the plan, each of which may have been taken before.
func (r *recovery) finish() error {
	me := r.file.Get()
	keeps := map[string]uint64{}
	for _, j := range r.plan.Journals {
		if j.Base.Node != me.Node {
			continue
		}
		keeps[j.JournalID.String()] = j.Base.Born
		if err := r.leadJournal(j); err != nil {
			return fmt.Errorf("making journal %d of stream %s go on: %w", j.Journal, j.Name, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(me.Replicas)) {
		id, err := parseCopyName(name)
		if err != nil {
			return err
		}
		if _, keep := keeps[name]; !keep {
			if err := r.setAside(r.Journal(id.Stream, id.Journal)); err != nil {
				return err
			}
		}
	}
	if err := r.recoverMeta(me.Node); err != nil {
		return fmt.Errorf("making the metadata go on: %w", err)
	}
	err := r.file.Update(func(i *datadir.Identity) {
		i.Generation, i.Replicas, i.SetBack = r.plan.Generation, keeps, ""
		i.Settled, i.Founding = me.Node == r.plan.Metadata, false
		maps.DeleteFunc(i.Peers, func(id int32, _ string) bool { return !slices.Contains(r.plan.Survivors, id) })
	})
	if err != nil {
		return err
	}
	if err := r.FS.Remove(filepath.Join(r.Path, fileName)); err != nil {
		return err
	}
	return r.FS.SyncDir(r.Path)
}

// leadJournal makes the copy of a journal its group's only member.
func (r *recovery) leadJournal(j PlannedJournal) error {
	o := storage.Options{FS: r.FS, Logger: r.log}
	return r.lead(r.Journal(j.Stream, j.Journal), o, j.Base.Server(raft.Voter), j.Term, nil, nil)
}

// recoverMeta makes the metadata go on here, or lets it come from the node where it does.
func (r *recovery) recoverMeta(self int32) error {
	dir := r.Meta()
	if self != r.plan.Metadata {
		return r.setAside(dir)
	}
	command, err := metadata.EncodeEntry(nil, []metadata.Command{{RecoverCluster: r.plan.command()}})
	if err != nil {
		return err
	}
	o := storage.Options{FS: r.FS, Logger: r.log, Commands: true, SegmentBytes: raftgroup.CommandSegment}
	match := func(j *storage.Journal) (LogEnd, error) {
		if err := raftgroup.MatchSnapshots(r.FS, dir, j, r.log); err != nil {
			return LogEnd{}, err
		}
		end, _, err := newestSnapshot(r.FS, dir)
		return end, err
	}
	return r.lead(dir, o, metadata.Replica{Node: self}.Server(raft.Voter), r.plan.MetadataTerm, match, command)
}

// lead appends to a log the entries by which its member goes on alone: the configuration, and a command if there is one.
// They are of a term that nobody has led in, which this member has entered. match, if given, says where a snapshot ends.
//
// The term is noted first: entries of a term that a member has not entered would be an impossible log. A step that was
// taken before is known by the term of the last entry.
func (r *recovery) lead(dir string, o storage.Options, self raft.Server, term uint64, match func(*storage.Journal) (LogEnd, error), command []byte) (err error) {
	j, err := storage.Open(dir, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if err := j.EndDoubt(); err != nil { // it is believed for want of a better one
		return err
	}
	var end LogEnd
	if match != nil {
		if end, err = match(j); err != nil {
			return err
		}
	}
	last, err := j.LastIndex()
	if err != nil {
		return err
	}
	if now, err := j.GetUint64([]byte("CurrentTerm")); err != nil || now > term {
		return errors.Join(err, fmt.Errorf("%s is in term %d, the plan for it is of term %d: it was used after its report was made; make the reports anew", dir, now, term))
	}
	entries := []*raft.Log{{Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(raft.Configuration{Servers: []raft.Server{self}})}}
	if command != nil {
		entries = append(entries, &raft.Log{Type: raft.LogCommand, Data: command})
	}
	for n := range entries { // of the last run
		var l raft.Log
		if last > uint64(n) && j.GetLog(last, &l) == nil && l.Term == term && l.Type == entries[len(entries)-1-n].Type {
			entries = entries[len(entries)-n:]
			break
		}
	}
	if err := j.SetUint64([]byte("CurrentTerm"), term); err != nil {
		return err
	}
	for i, l := range entries {
		l.Index, l.Term, l.AppendedAt = max(last, end.Entry)+1+uint64(i), term, time.Now()
	}
	if len(entries) == 0 {
		return nil
	}
	return j.StoreLogs(entries)
}

// setAside moves a directory to where nobody takes it for a copy.
func (r *recovery) setAside(dir string) error {
	below, err := filepath.Rel(r.Path, dir)
	if err != nil {
		return err
	}
	to := filepath.Join(r.Path, fmt.Sprintf("set-aside-%d", r.plan.Generation), below)
	err = moveAll(r.FS, dir, to)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was moved before
	}
	return err
}

// moveAll moves the files of a directory into another one, with those of the directories in it, and removes what is
// empty then. It may be called again after it was cut off.
func moveAll(fsys vfs.FS, from, to string) error {
	names, err := fsys.ReadDir(from)
	if err != nil {
		return err
	}
	if err := fsys.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		child, dest := filepath.Join(from, name), filepath.Join(to, name)
		info, err := fsys.Stat(child)
		if err != nil {
			return err
		}
		if info.IsDir() {
			err = moveAll(fsys, child, dest)
		} else {
			err = fsys.Rename(child, dest)
		}
		if err != nil {
			return err
		}
	}
	for _, dir := range []string{to, filepath.Dir(to), from} {
		if err := fsys.SyncDir(dir); err != nil {
			return err
		}
	}
	if err := fsys.Remove(from); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(from))
}
