/** What a tag may be called. */
const NAME_LENGTH_MAX = 255;

export const NAME_REFUSED = `must have 1 to ${NAME_LENGTH_MAX} characters besides blanks around it`;

/** @returns the name without blanks around it; null when it is none */
export function readTagName(text: string): string | null {
  const name = text.trim();
  return name === '' || name.length > NAME_LENGTH_MAX ? null : name;
}
