/**
 * How much callers may write, and how much one reply may hold. What is larger is refused before a transaction begins, so
 * nobody's content keeps the writer busy. Honest content stays far below.
 */

/** Characters of one text in an answer. */
export const ANSWER_LENGTH_MAX = 65_536;
/** Entries of one answer: selected choices, rows of a matrix, files. */
export const ANSWER_ITEMS_MAX = 1_000;
/** Answers of one response, and likewise its variables and times. */
export const ANSWERS_MAX = 2_000;
/** Everything a response says, as JSON, with what earlier updates said. */
export const RESPONSE_BYTES_MAX = 524_288;
/** Ids and codes that come with a response. */
export const RESPONSE_ID_LENGTH_MAX = 1_024;

/** Tags of one workspace: the list of v3 has no pages. */
export const TAGS_MAX = 1_000;
export const RESPONSE_TAGS_MAX = 50;
export const RESPONSE_NOTES_MAX = 50;
/** Characters of one note: lists of responses show all notes. */
export const NOTE_LENGTH_MAX = 2_000;

/** A whole survey, as JSON. */
export const SURVEY_BYTES_MAX = 1_048_576;
export const QUESTIONS_MAX = 1_000;
/** Choices of one question; rows and columns of a matrix alike. */
export const CHOICES_MAX = 1_000;
/** Validation rules of one survey. */
export const RULES_MAX = 1_000;
/** Those of them that are regular expressions. */
export const PATTERN_RULES_MAX = 20;
export const PATTERN_LENGTH_MAX = 256;
/** Instructions of a compiled pattern. */
export const PATTERN_SIZE_MAX = 500;
/**
 * Work on the patterns of one response: instructions of a pattern times characters of the answer, summed up. A step takes
 * up to 70 ns (Node 26, 2 cores).
 */
export const PATTERN_STEPS_MAX = 1_000_000;

/** Characters of what an app calls its user. */
export const USER_ID_LENGTH_MAX = 255;

/** Values in one JSON body. */
export const BODY_VALUES_MAX = 100_000;
/** Different keys in it. 90,000 of them took 180 ms to parse, in the middle (Node 26, 2 cores); these take 25. */
export const BODY_NAMES_MAX = 10_000;

/** What the rows of one page of a list may add up to. */
export const LIST_PAGE_BYTES_MAX = 8_388_608;
