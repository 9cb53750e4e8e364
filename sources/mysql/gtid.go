package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// gtid names one transaction. On MySQL, source is the server's UUID, with ":tag"
// behind it where there is one; on MariaDB it is empty and domain and server are set.
type gtid struct {
	source         string
	domain, server uint32
	number         uint64
}

// append writes the GTID as the server prints it.
func (g gtid) append(b []byte) []byte {
	if g.source == "" {
		b = strconv.AppendUint(b, uint64(g.domain), 10)
		b = append(b, '-')
		b = strconv.AppendUint(b, uint64(g.server), 10)
		b = append(b, '-')
		return strconv.AppendUint(b, g.number, 10)
	}
	b = append(b, g.source...)
	b = append(b, ':')
	return strconv.AppendUint(b, g.number, 10)
}

// gtidSet is a set of transactions. It is our own because the library's bookkeeping loses tags after a reconnect.
type gtidSet interface {
	add(gtid)
	contains(gtidSet) bool
	String() string
}

// parseGTIDs reads a set as the server prints it.
func parseGTIDs(flavor, s string) (gtidSet, error) {
	if flavor == flavorMariaDB {
		return parseMariaGTIDs(s)
	}
	return parseMySQLGTIDs(s)
}

// maxShown is how many members of a set a person is shown.
const maxShown = 4

// shortGTIDs shortens a set that gtidSet.String wrote: of each source the first digits of
// its UUID, the tag and the last interval, and no more than maxShown sources.
func shortGTIDs(set string) string {
	parts := strings.Split(set, ",")
	for i, part := range parts {
		fields := strings.Split(part, ":")
		if len(fields) < 2 || len(fields[0]) < 8 {
			continue // MariaDB's are short
		}
		short := []string{fields[0][:8] + "…"}
		if isTag(fields[1]) {
			short, fields = append(short, fields[1]), fields[1:]
		}
		if len(fields) > 2 {
			short = append(short, "…")
		}
		parts[i] = strings.Join(append(short, fields[len(fields)-1]), ":")
	}
	if more := len(parts) - maxShown; more > 0 {
		return strings.Join(parts[:maxShown], ",") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(parts, ",")
}

// interval is the numbers from lo to hi, both included.
type interval struct{ lo, hi uint64 }

// mysqlGTIDs maps a source to its intervals, which are sorted and don't touch.
type mysqlGTIDs struct {
	of map[string][]interval
}

func parseMySQLGTIDs(s string) (*mysqlGTIDs, error) {
	set := &mysqlGTIDs{of: map[string][]interval{}}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		fields := strings.Split(part, ":")
		uuid := strings.ToLower(strings.TrimSpace(fields[0]))
		if len(uuid) != 36 || len(fields) < 2 {
			return nil, fmt.Errorf("GTID set %q: %q is not UUID:numbers", s, part)
		}
		source := uuid
		for _, f := range fields[1:] {
			f = strings.TrimSpace(f)
			iv, err := parseInterval(f)
			if err != nil {
				if !isTag(f) {
					return nil, fmt.Errorf("GTID set %q: %w", s, err)
				}
				source = uuid + ":" + strings.ToLower(f)
				continue
			}
			set.insert(source, iv)
		}
	}
	return set, nil
}

// isTag reports whether s is the tag of a GTID rather than numbers.
func isTag(s string) bool {
	return s != "" && (s[0] == '_' || s[0] >= 'a' && s[0] <= 'z' || s[0] >= 'A' && s[0] <= 'Z')
}

func parseInterval(s string) (interval, error) {
	lo, hi, ranged := strings.Cut(s, "-")
	a, err := strconv.ParseUint(lo, 10, 63)
	if err != nil {
		return interval{}, fmt.Errorf("%q is not a number or range", s)
	}
	b := a
	if ranged {
		if b, err = strconv.ParseUint(hi, 10, 63); err != nil || b < a {
			return interval{}, fmt.Errorf("%q is not a range", s)
		}
	}
	return interval{a, b}, nil
}

func (s *mysqlGTIDs) add(g gtid) {
	// The next number of the last interval is by far the most frequent.
	if ivs := s.of[g.source]; len(ivs) > 0 && ivs[len(ivs)-1].hi+1 == g.number {
		ivs[len(ivs)-1].hi++
		return
	}
	s.insert(g.source, interval{g.number, g.number})
}

// insert adds an interval and melts together what then touches.
func (s *mysqlGTIDs) insert(source string, iv interval) {
	ivs := append(s.of[source], iv)
	slices.SortFunc(ivs, func(a, b interval) int {
		if a.lo < b.lo {
			return -1
		}
		return 1
	})
	out := ivs[:1]
	for _, next := range ivs[1:] {
		last := &out[len(out)-1]
		if next.lo <= last.hi+1 {
			last.hi = max(last.hi, next.hi)
			continue
		}
		out = append(out, next)
	}
	s.of[source] = out
}

func (s *mysqlGTIDs) contains(other gtidSet) bool {
	o, ok := other.(*mysqlGTIDs)
	if !ok {
		return false
	}
	for source, wanted := range o.of {
		have := s.of[source]
		for _, w := range wanted {
			if !slices.ContainsFunc(have, func(h interval) bool { return h.lo <= w.lo && w.hi <= h.hi }) {
				return false
			}
		}
	}
	return true
}

// String prints the set sorted, so that equal sets have equal texts.
func (s *mysqlGTIDs) String() string {
	sources := make([]string, 0, len(s.of))
	for source := range s.of {
		sources = append(sources, source)
	}
	slices.Sort(sources)
	var b []byte
	for _, source := range sources {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = append(b, source...)
		for _, iv := range s.of[source] {
			b = append(b, ':')
			b = strconv.AppendUint(b, iv.lo, 10)
			if iv.hi > iv.lo {
				b = append(b, '-')
				b = strconv.AppendUint(b, iv.hi, 10)
			}
		}
	}
	return string(b)
}

// mariaGTIDs is MariaDB's position: the last transaction of each domain.
type mariaGTIDs struct {
	last map[uint32]gtid
}

func parseMariaGTIDs(s string) (*mariaGTIDs, error) {
	set := &mariaGTIDs{last: map[uint32]gtid{}}
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		fields := strings.Split(part, "-")
		if len(fields) != 3 {
			return nil, fmt.Errorf("GTID position %q: %q is not domain-server-number", s, part)
		}
		domain, err1 := strconv.ParseUint(fields[0], 10, 32)
		server, err2 := strconv.ParseUint(fields[1], 10, 32)
		number, err3 := strconv.ParseUint(fields[2], 10, 64)
		if err1 != nil || err2 != nil || err3 != nil {
			return nil, fmt.Errorf("GTID position %q: %q is not domain-server-number", s, part)
		}
		set.add(gtid{domain: uint32(domain), server: uint32(server), number: number})
	}
	return set, nil
}

func (s *mariaGTIDs) add(g gtid) { s.last[g.domain] = g }

func (s *mariaGTIDs) contains(other gtidSet) bool {
	o, ok := other.(*mariaGTIDs)
	if !ok {
		return false
	}
	for domain, g := range o.last {
		if s.last[domain].number < g.number {
			return false
		}
	}
	return true
}

// String prints the position sorted by domain.
func (s *mariaGTIDs) String() string {
	domains := make([]uint32, 0, len(s.last))
	for d := range s.last {
		domains = append(domains, d)
	}
	slices.Sort(domains)
	var b []byte
	for _, d := range domains {
		if len(b) > 0 {
			b = append(b, ',')
		}
		b = s.last[d].append(b)
	}
	return string(b)
}
