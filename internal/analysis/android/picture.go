package android

import (
	"bytes"
	"encoding/binary"
)

// pictureSize reads width and height from the header of a compressed picture,
// in the formats that Bitmap.CompressFormat writes: PNG, JPEG and WebP. ok is
// false for other formats, and for an incomplete header.
func pictureSize(b []byte) (width, height int64, ok bool) {
	switch {
	case bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")):
		return pngSize(b)
	case bytes.HasPrefix(b, []byte("\xff\xd8")):
		return jpegSize(b)
	case bytes.HasPrefix(b, []byte("RIFF")) && len(b) >= 30 && string(b[8:12]) == "WEBP":
		return webpSize(b)
	}
	return 0, 0, false
}

// pngSize reads IHDR, the first chunk (PNG specification, 11.2.2).
func pngSize(b []byte) (width, height int64, ok bool) {
	if len(b) < 24 || string(b[12:16]) != "IHDR" {
		return 0, 0, false
	}
	return int64(binary.BigEndian.Uint32(b[16:])), int64(binary.BigEndian.Uint32(b[20:])), true
}

// jpegSize reads the first frame header (ITU T.81, B.2.2).
func jpegSize(b []byte) (width, height int64, ok bool) {
	for b = b[2:]; len(b) >= 4; {
		if b[0] != 0xff {
			return 0, 0, false
		}
		marker := b[1]
		if marker == 0xff {
			b = b[1:]
			continue
		}
		n := int(binary.BigEndian.Uint16(b[2:]))
		if marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc {
			if len(b) < 9 {
				return 0, 0, false
			}
			return int64(binary.BigEndian.Uint16(b[7:])), int64(binary.BigEndian.Uint16(b[5:])), true
		}
		if n < 2 || n+2 > len(b) {
			return 0, 0, false
		}
		b = b[n+2:]
	}
	return 0, 0, false
}

// webpSize reads the first chunk (RFC 9649, 2.5 to 2.7). b has at least 30
// bytes.
func webpSize(b []byte) (width, height int64, ok bool) {
	body := b[20:]
	switch string(b[12:16]) {
	case "VP8 ":
		if body[3] != 0x9d || body[4] != 0x01 || body[5] != 0x2a {
			return 0, 0, false
		}
		return int64(binary.LittleEndian.Uint16(body[6:]) & 0x3fff),
			int64(binary.LittleEndian.Uint16(body[8:]) & 0x3fff), true
	case "VP8L":
		if body[0] != 0x2f {
			return 0, 0, false
		}
		v := binary.LittleEndian.Uint32(body[1:])
		return int64(v&0x3fff) + 1, int64(v>>14&0x3fff) + 1, true
	case "VP8X":
		u24 := func(b []byte) int64 { return int64(b[0]) | int64(b[1])<<8 | int64(b[2])<<16 }
		return u24(body[4:]) + 1, u24(body[7:]) + 1, true
	}
	return 0, 0, false
}
