package live

import (
	"fmt"
	"strconv"
	"time"
)

// clock writes a duration as 0:07, 12:34 or 1:02:03.
func clock(d time.Duration) string {
	s := int64(max(d, 0) / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// daytime writes an offset on the day's clock as 09:12.
func daytime(d time.Duration) string {
	m := int64(max(d, 0) / time.Minute)
	return fmt.Sprintf("%02d:%02d", m/60, m%60)
}

// scale writes 20 as ×20 and 2.5 as ×2.5.
func scale(f float64) string { return "×" + strconv.FormatFloat(f, 'f', -1, 64) }

// latency writes a duration with about three digits.
func latency(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 10_000:
		return fmt.Sprintf("%.0f ms", ms)
	default:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
}
