/**
 * Limits for the size of requests and replies. Larger content is refused before a transaction begins, so that it does
 * not occupy the writer. Real content is far smaller.
 */

/** Maximum size of a whole response as JSON in bytes, including earlier updates. */
export const RESPONSE_BYTES_MAX = 524_288;
/** Maximum number of characters of ids and codes that a response contains. PostgreSQL indexes 2,704 bytes at most. */
export const RESPONSE_ID_LENGTH_MAX = 512;

/** Maximum size of a whole survey as JSON. */
export const SURVEY_BYTES_MAX = 1_048_576;
export const SURVEY_NAME_LENGTH_MAX = 1_000;
export const QUESTIONS_MAX = 1_000;
/** Maximum number of choices of one question, and of rows or columns of a matrix. */
export const CHOICES_MAX = 1_000;

/** Maximum number of surveys in a state. */
export const STATE_SURVEYS_MAX = 30;
/** Maximum size of these surveys in the database. A state contains most parts of them three times. */
export const STATE_DOCUMENTS_BYTES_MAX = 2_097_152;
/** Maximum size of the `noCodeConfig` of all action classes of a workspace. A state contains it twice. */
export const ACTION_CLASSES_BYTES_MAX = 524_288;

/** Maximum number of characters of an app's own id of a user. */
export const USER_ID_LENGTH_MAX = 255;

/** Maximum number of values in one JSON body. */
export const BODY_VALUES_MAX = 100_000;
/**
 * Number of different keys in one JSON body. 90,000 keys took 180 ms to parse (median, Node 26, 2 cores); this number
 * takes 25 ms.
 */
export const BODY_NAMES_MAX = 10_000;

/** Maximum total size of the rows in one page of a list. */
export const LIST_PAGE_BYTES_MAX = 8_388_608;
