package claim

import (
	"encoding/base64"
	"fmt"
)

// EncodeCursor makes a [Page.Cursor] of a position, for stores that list in the order of their keys: the last key that
// was looked at. A cursor is fit to stand in a URL.
func EncodeCursor(position string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(position))
}

// DecodeCursor is the inverse of [EncodeCursor].
func DecodeCursor(cursor string) (string, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", fmt.Errorf("%w: the cursor is not one that this store gave out", ErrArgument)
	}
	return string(b), nil
}
