//go:build linux

package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The places of a machine's disk, in its own mount namespace.
const (
	diskMemory = "/mnt"           // a tmpfs that holds the image
	diskImage  = "/mnt/image"     // what the loop device is made of: what a power cut leaves
	diskFolder = "/mnt/disk"      // where it is mounted
	ballast    = "/mnt/disk/.fat" // fills it
	bootFile   = "/mnt/boot-id"   // what the machine's processes read as the kernel's boot id
)

// patience bounds what is done to a disk: a freeze waits until everything is synced.
const patience = time.Minute

// Disk is a machine's: an ext4 of its own. Its methods are safe for concurrent use.
type Disk struct {
	thread *thread

	mu    sync.Mutex // guards what follows, and orders all that is done to the disk
	guard *exec.Cmd  // keeps the disk frozen; nil where it is not
	thaw  io.Closer  // ends the guard
}

func newDisk(t *thread, size int64) (*Disk, error) {
	d := &Disk{thread: t}
	for _, step := range []func() error{func() error { return makeImage(size) }, boot, showBoot} {
		if err := t.do(step); err != nil {
			return nil, fmt.Errorf("making a disk: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := t.output(ctx, "mkfs.ext4", "-q", "-F", "-m", "0", diskImage); err != nil {
		return nil, err
	}
	return d, d.mount(ctx)
}

func makeImage(size int64) error {
	// The image grows with what is written to it; the rest of the tmpfs is for ext4's own structures.
	if err := unix.Mount("tmpfs", diskMemory, "tmpfs", 0, "size="+strconv.FormatInt(size+size/4, 10)); err != nil {
		return err
	}
	if err := os.Mkdir(diskFolder, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(diskImage, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(diskImage, size)
}

// boot makes another boot of the machine, as far as its processes can tell.
func boot() error {
	id, err := os.ReadFile("/proc/sys/kernel/random/uuid")
	if err != nil {
		return err
	}
	return os.WriteFile(bootFile, id, 0o444)
}

// showBoot puts the machine's boot id in the place of the kernel's.
func showBoot() error {
	return unix.Mount(bootFile, "/proc/sys/kernel/random/boot_id", "", unix.MS_BIND, "")
}

func (d *Disk) mount(ctx context.Context) error {
	_, err := d.thread.output(ctx, "mount", "-t", "ext4", "-o", "loop", diskImage, diskFolder)
	return err
}

// Folder is the disk's root on its machine.
func (d *Disk) Folder() string { return diskFolder }

// PowerCut loses what was not synced, as a machine does that loses its power, and mounts what is left, in another boot of
// the machine. No process may have a file open on the disk: kill them first.
func (d *Disk) PowerCut() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := errors.Join(d.thread.do(shutdown), d.unmount(ctx), d.thread.do(boot)); err != nil {
		return fmt.Errorf("cutting a disk's power: %w", err)
	}
	return d.mount(ctx)
}

// unmount waits for those that have a file open for a moment: a child of this process has all of its files until it
// becomes the program it is for.
func (d *Disk) unmount(ctx context.Context) error {
	for {
		err := d.thread.do(func() error { return unix.Unmount(diskFolder, 0) })
		if !errors.Is(err, unix.EBUSY) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Die makes every further read and write of what is not in memory fail with an error, until PowerCut.
func (d *Disk) Die() error { return d.thread.do(shutdown) }

// shutdown stops the file system where it stands: nothing more of it reaches its device, not even its own journal.
func shutdown() error {
	const (
		ext4Shutdown = 0x8004587d // EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
		noLogFlush   = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
	)
	f, err := os.Open(diskFolder)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := uint32(noLogFlush)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), ext4Shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		return fmt.Errorf("shutting ext4 down: %w", errno)
	}
	return nil
}

// Fill leaves so many bytes free, or fewer.
func (d *Disk) Fill(leave int64) error {
	return d.thread.do(func() error {
		f, err := os.OpenFile(ballast, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return err
		}
		defer f.Close()
		var st unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
			return err
		}
		free := int64(st.Bavail)*st.Bsize - leave
		size, err := f.Seek(0, io.SeekEnd)
		if err != nil || free <= 0 {
			return err
		}
		// fallocate without writing: the image takes no memory for it.
		err = unix.Fallocate(int(f.Fd()), 0, size, free)
		if errors.Is(err, unix.ENOSPC) { // somebody else was faster, who wants the space as well
			return nil
		}
		return err
	})
}

// Free gives back what Fill took.
func (d *Disk) Free() error {
	return d.thread.do(func() error {
		if err := os.Remove(ballast); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}

// Freeze makes every write and sync wait until Thaw. What is written by then is synced first.
func (d *Disk) Freeze() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.guard != nil {
		return nil
	}
	// Nobody can kill a process that waits for a frozen disk. So the disk is thawed by one that learns of our end
	// however it comes: its standard input ends.
	cmd := exec.Command("sh", "-c", `fsfreeze --freeze "$0" && echo frozen && read -r _; fsfreeze --unfreeze "$0"`, diskFolder)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := d.thread.do(cmd.Start); err != nil {
		return err
	}
	d.guard, d.thaw = cmd, in
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "frozen\n" {
		return errors.Join(fmt.Errorf("freezing a disk: %q %w", line, err), d.unfreeze())
	}
	return nil
}

// Thaw ends Freeze.
func (d *Disk) Thaw() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.unfreeze()
}

// unfreeze is Thaw for who holds mu.
func (d *Disk) unfreeze() error {
	if d.guard == nil {
		return nil
	}
	_ = d.thaw.Close()
	if err := d.guard.Wait(); err != nil {
		return fmt.Errorf("thawing a disk: %w", err)
	}
	d.guard = nil
	return nil
}

// Data is the folder for a server's data: on the disk, below its root.
func (d *Disk) Data() string { return filepath.Join(diskFolder, "data") }
