/** Returns a whole number from 0 to below `end`, all equally likely. Only the edge and tests name a source of chance. */
export type RandomInt = (end: number) => number;
