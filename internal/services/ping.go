package services

import (
	"bufio"
	"context"
	"io"
	"net"
)

// firstLine connects, sends a request, which may be empty, and returns the first line
// that comes, with its end.
func firstLine(ctx context.Context, addr, request string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}
