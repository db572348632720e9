package model

import "fmt"

// what names a step.
type what uint8

const (
	arrives what = iota
	resends
	resendsAndReleases
	forwards
	waits
	wakes
	leaves
	answersOK
	seesSuccess
	missesSuccess
	seesFailure
	losesPatience
	forgets
	isFollowed
	isAnswered
	isAppliedUnheard
	isLost
	lingers
	isDoubled
	isAppliedLate
	vanishes
	isDoneByApp
	isFailedByApp
	crashes
	crashesWithRequestOut
	leaseEnds
	dataIsLost
)

var sentences = [...]string{
	arrives:               "arrives and claims",
	resends:               "sends its request again, with the same token",
	resendsAndReleases:    "sends its claim again, and a release at the same time",
	forwards:              "forwards to the application",
	waits:                 "waits",
	wakes:                 "wakes and claims again",
	leaves:                "answers the provider with an error",
	answersOK:             "answers the provider with 2xx",
	seesSuccess:           "sees the application's success and completes",
	missesSuccess:         "misses the application's success and releases",
	seesFailure:           "sees the application's failure and releases",
	losesPatience:         "has no patience with the application and releases",
	forgets:               "is over",
	isFollowed:            "is followed by a retry of the provider",
	isAnswered:            "is answered:",
	isAppliedUnheard:      "is answered, unheard:",
	isLost:                "loses its request:",
	lingers:               "gives up a request that stays in the network:",
	isDoubled:             "has its request doubled by the network:",
	isAppliedLate:         "has a request applied that it gave up:",
	vanishes:              "has a request vanish that it gave up:",
	isDoneByApp:           "is done by the application",
	isFailedByApp:         "fails in the application",
	crashes:               "crashes with its proxy",
	crashesWithRequestOut: "crashes with its proxy, and a request stays in the network:",
	leaseEnds:             "the lease runs out",
	dataIsLost:            "the store loses its data",
}

var opWords = map[op]string{claim: "claim", renew: "renew", complete: "complete", release: "release"}

var answerWords = [...]string{"", "", "granted", "in flight", "duplicate", "refused", "done", "lease lost"}

var kindWords = [...]string{"absent", "processing", "processed", "failed"}

// String tells the step.
func (e event) String() string {
	text := sentences[e.what]
	if e.delivery >= 0 {
		text = fmt.Sprintf("D%d %s", e.delivery+1, text)
	}
	if e.op != 0 {
		text += " " + opWords[e.op]
	}
	if e.answer > sent {
		text += ", " + answerWords[e.answer]
	}
	return text
}

// String tells what the store has.
func (s state) String() string {
	text := kindWords[s.record]
	if s.token > 0 {
		text += fmt.Sprintf(" by D%d", s.token)
	}
	if s.record == processing && !s.live {
		text += ", lease over"
	}
	return text
}
