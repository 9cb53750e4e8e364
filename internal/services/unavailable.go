package services

import "fmt"

// Unavailable is the error of a service that can't be installed on this machine
// because something outside of Daybook is missing. Find it with errors.As: the
// demo names it and goes on without the service.
type Unavailable struct {
	Service string // the service asked for, such as "elasticsearch"
	Missing string // what is missing, such as "mvn"
	Package string // the Debian package that brings it; empty if none does
	Err     error  // the cause; nil if the thing simply isn't there
}

// Error says what is missing for which service, and what to do about it.
func (u *Unavailable) Error() string {
	s := fmt.Sprintf("%s is not available: %s is missing", u.Service, u.Missing)
	if u.Package != "" {
		s += fmt.Sprintf(" (Debian package %s)", u.Package)
	}
	if u.Err != nil {
		s += ": " + u.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.Err }
