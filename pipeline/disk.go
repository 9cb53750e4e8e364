package pipeline

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/daybook-data/daybook/configs"
)

// DiskConfig says how an embedded journal, or a server, treats its disk.
type DiskConfig struct {
	// Reserve is what must be free for appends to be taken: a size, "5%", or "none".
	// Empty is the default.
	Reserve string
	// DeleteEarly removes old records before their time while the reserve is touched.
	DeleteEarly bool
	// Stall is after how long the disk is said not to answer.
	Stall time.Duration
	// Cache is how many bytes of memory journals may fill with what was written and read.
	Cache int64
}

// Fields declares the section `disk`.
func (c *DiskConfig) Fields(d *configs.Fields) {
	d.String(&c.Reserve, "reserve", "", "What must be free for appends to be taken: a size, a part of the disk like 5%, or none. Empty is 5%, at most 1GiB.")
	d.Bool(&c.DeleteEarly, "delete_early", false, "Remove the oldest records before their time while the reserve is touched; what a sink has not read stays.")
	d.Duration(&c.Stall, "stall", 5*time.Second, "After how long a disk that does not answer is reported.", configs.Positive)
	d.Size(&c.Cache, "cache", configs.GiB, "How much memory the journals may fill, all together: with what was written last, for those who read at the end, and with what readers of old data bring back.", configs.Positive)
}

// Check wants a reserve that can be understood.
func (c *DiskConfig) Check(at *configs.At) {
	if _, _, err := c.ReserveOf(); err != nil {
		at.Errorf("reserve", "%v", err)
	}
}

// ReserveOf returns the reserve in bytes, or in percent of the disk if that is above 0.
// Negative bytes are none, and 0 is the default.
func (c *DiskConfig) ReserveOf() (bytes int64, percent float64, err error) {
	part, isPercent := strings.CutSuffix(c.Reserve, "%")
	switch {
	case c.Reserve == "":
		return 0, 0, nil
	case c.Reserve == "none":
		return -1, 0, nil
	case isPercent:
		percent, err = strconv.ParseFloat(part, 64)
		if err != nil || !(percent > 0 && percent < 100) { // NaN is neither
			return 0, 0, fmt.Errorf("reserve %s: must be between 0%% and 100%%", c.Reserve)
		}
		return 0, percent, nil
	}
	if bytes, err = configs.ParseSize(c.Reserve); err != nil || bytes <= 0 {
		return 0, 0, fmt.Errorf("reserve %s: must be a size like 2GiB, a part like 5%%, or none", c.Reserve)
	}
	return bytes, 0, nil
}
