package provider

import "strconv"

// appendEmail appends an address of the person in one of the usual spellings.
func appendEmail(dst []byte, first, last name, r uint64) []byte {
	switch r % 4 {
	case 0:
		dst = append(append(append(dst, first.plain...), '.'), last.plain...)
	case 1:
		dst = append(append(dst, first.plain[0]), last.plain...)
	case 2:
		dst = strconv.AppendUint(append(append(dst, first.plain...), last.plain[:2]...), among(r>>8, 70, 99), 10)
	default:
		dst = strconv.AppendUint(append(append(append(dst, last.plain...), '_'), first.plain[0]), among(r>>8, 1, 999), 10)
	}
	return append(append(dst, '@'), pick(mailHosts, r>>32)...)
}

// appendIP appends an IPv4 address that nobody routes to (198.18.0.0/15, RFC 2544).
func appendIP(dst []byte, r uint64) []byte {
	dst = strconv.AppendUint(append(dst, "198."...), among(r, 18, 19), 10)
	dst = strconv.AppendUint(append(dst, '.'), among(r>>8, 0, 255), 10)
	return strconv.AppendUint(append(dst, '.'), among(r>>16, 1, 254), 10)
}

// appendStreet appends a house number and a street.
func appendStreet(dst []byte, r uint64) []byte {
	dst = strconv.AppendUint(dst, among(r, 1, 4999), 10)
	return append(append(dst, ' '), pick(streets, r>>24)...)
}

// appendSlug appends words in lower case with hyphens for everything that is not a letter or a digit.
func appendSlug(dst []byte, parts ...string) []byte {
	for i, part := range parts {
		if i > 0 {
			dst = append(dst, '-')
		}
		for _, c := range []byte(part) {
			switch {
			case c >= 'A' && c <= 'Z':
				dst = append(dst, c+'a'-'A')
			case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
				dst = append(dst, c)
			default:
				dst = append(dst, '-')
			}
		}
	}
	return dst
}

// appendTwo appends a number below 100 with two digits.
func appendTwo(dst []byte, n uint64) []byte {
	return append(dst, byte('0'+n/10%10), byte('0'+n%10))
}
