// Package lab gives real processes machines of their own within this one, and breaks these.
//
// A machine is a network namespace, a mount namespace, a disk and a clock:
//
//   - Its network device is a TUN device whose other end is held by this process, which is the switch between all
//     machines. So each direction of each pair can drop, delay, reorder and double packets, without tc, netfilter or a
//     bridge, of which kernels have one and lack another.
//   - Its disk is an ext4 in a loop device, in memory. It can be full, stalled (frozen), and cut off its power: what was
//     not synced is then lost, exactly as ext4 loses it ([Disk.PowerCut]).
//   - Its time of day can be set ([Machine.SetClock]), on amd64, for programs that ask the vDSO for it, as Go's do.
//
// Nothing of the system is touched: namespaces are anonymous, and the kernel takes them away, with all that is mounted
// and connected in them, when the last process in them is gone. Processes of a machine get SIGKILL from the kernel when
// this process ends, however it ends. So nothing is left behind, and there is nothing to clean up.
//
// It needs Linux, root (CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_SYS_PTRACE), /dev/net/tun, loop devices, mount, mkfs.ext4 and
// fsfreeze; New says what of it is missing and what to do.
//
// Labs are safe for concurrent use, and there may be many at once.
package lab
