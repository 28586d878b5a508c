/** The type of a parsed body: a test says what it expects by reading it. */
export type Json = ReturnType<typeof JSON.parse>;
