/** What `JSON.parse` gives: a test says what it expects of a body by reading it. */
export type Json = ReturnType<typeof JSON.parse>;
