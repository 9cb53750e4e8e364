package file

import (
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"github.com/daybook-data/daybook/internal/vfs"
)

// pieceBytes is how much of a file is compressed at a time.
const pieceBytes = 1 << 20

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A part is a file that is being written: in the hidden folder, under its number in the flush.
type part struct {
	name string // in the folder of the parts
	path string // of the file it will be, below the root

	raw     []byte   // lines not compressed yet
	packed  []byte   // compressed but not written yet
	size    int64    // bytes written
	sum     uint32   // CRC-32C of the bytes written
	records int64    // lines
	file    vfs.File // nil when not open
	dirty   bool     // written since the last sync
	suspect bool     // a sync failed: what was written must be copied before it counts
	sealed  bool     // complete and synced
}

// pack compresses what waits. Where pieces end must not depend on what the disk does, so this is apart from writing.
func (p *part) pack(pk *packer) {
	if len(p.raw) > 0 {
		p.packed = append(p.packed, pk.pack(p.raw)...)
		p.raw = p.raw[:0]
	}
}

// length is what the file will have, without what is not compressed yet.
func (p *part) length() int64 { return p.size + int64(len(p.packed)) }

// write writes what is packed. After an error it can be called again.
func (p *part) write(fsys vfs.FS, folder string) error {
	if len(p.packed) == 0 {
		return nil
	}
	if err := p.open(fsys, folder); err != nil {
		return err
	}
	p.dirty = true
	if _, err := p.file.WriteAt(p.packed, p.size); err != nil {
		return fmt.Errorf("writing %s: %w", p.file.Name(), err)
	}
	p.sum = crc32.Update(p.sum, castagnoli, p.packed)
	p.size += int64(len(p.packed))
	p.packed = p.packed[:0]
	return nil
}

func (p *part) open(fsys vfs.FS, folder string) (err error) {
	if p.file != nil {
		return nil
	}
	flag := os.O_RDWR | os.O_CREATE
	if p.size == 0 {
		flag |= os.O_TRUNC // what a failed write of an earlier try left
	}
	p.file, err = fsys.OpenFile(filepath.Join(folder, p.name), flag, 0o644)
	return err
}

// sync makes what was written durable and closes the part. After a failure what is on disk can't be trusted, and
// another sync proves nothing: the next call copies what still reads right, and syncs the copy.
func (p *part) sync(fsys vfs.FS, folder string) error {
	if !p.dirty {
		return p.close()
	}
	if err := p.open(fsys, folder); err != nil {
		return err
	}
	if p.suspect {
		if err := p.copy(fsys, folder); err != nil {
			return fmt.Errorf("copying %s after a failed sync: %w", p.name, err)
		}
	}
	if err := p.file.Sync(); err != nil {
		p.suspect = true
		return fmt.Errorf("syncing %s: %w", p.file.Name(), err)
	}
	p.dirty = false
	return p.close()
}

func (p *part) close() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	return err
}

// copy writes the part anew, under the same name, from what can be read of it and proves right.
func (p *part) copy(fsys vfs.FS, folder string) error {
	old := filepath.Join(folder, p.name)
	fresh := old + ".copy"
	dst, err := fsys.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	sum := uint32(0)
	buf := make([]byte, min(p.size, pieceBytes))
	for at := int64(0); at < p.size && err == nil; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), p.size-at)]
		if _, err = p.file.ReadAt(buf, at); err != nil {
			break
		}
		sum = crc32.Update(sum, castagnoli, buf)
		_, err = dst.WriteAt(buf, at)
	}
	if err == nil && sum != p.sum {
		err = errBroken
	}
	if err == nil {
		err = fsys.Rename(fresh, old)
	}
	if err != nil {
		_ = dst.Close()
		_ = fsys.Remove(fresh)
		return err
	}
	_ = p.file.Close()
	p.file, p.suspect = dst, false
	return nil
}
