/** Forms on pages: fields with their labels, hints and errors, linked for screen readers. Pure. */
import { escapeHtml } from '#shared/page.ts';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type: 'text' | 'email' | 'password';
  readonly autocomplete: string;
  readonly hint?: string;
  /** The text that was typed before. Never a password. */
  readonly value?: string | undefined;
  /** The mistake in the typed text; unset if there is none. */
  readonly error?: string | undefined;
}

/** Writes a field in its paragraph. Its id is its name, so a page has each name once. */
export function field({ name, label, type, autocomplete, hint, value, error }: Field): string {
  const described = [
    ...(hint === undefined ? [] : [`${name}-hint`]),
    ...(error === undefined ? [] : [`${name}-error`]),
  ];
  const attributes = [
    `id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}" required`,
    ...(value === undefined ? [] : [`value="${escapeHtml(value)}"`]),
    ...(error === undefined ? [] : ['aria-invalid="true"']),
    ...(described.length === 0 ? [] : [`aria-describedby="${described.join(' ')}"`]),
  ];
  return [
    `<div class="field"><label for="${name}">${escapeHtml(label)}</label>`,
    `<input ${attributes.join(' ')}>`,
    ...(hint === undefined ? [] : [`<p class="hint" id="${name}-hint">${escapeHtml(hint)}</p>`]),
    ...(error === undefined ? [] : [`<p class="error" id="${name}-error">${escapeHtml(error)}</p>`]),
    '</div>',
  ].join('\n');
}

/**
 * @param inputs HTML
 * @param submit the text of the button
 * @param look primary for the main action, plain for another one, danger if it cannot be undone
 */
export function form(
  action: string,
  inputs: readonly string[],
  submit: string,
  look: 'primary' | 'plain' | 'danger' = 'primary',
): string {
  const button = `<button class="${look}">${escapeHtml(submit)}</button>`;
  return `<form method="post" action="${escapeHtml(action)}">\n${inputs.join('\n')}\n${button}\n</form>`;
}

export function hidden(name: string, value: string): string {
  return `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
}

/** Writes a message that screen readers read at once. @param text HTML */
export function alert(text: string): string {
  return `<p class="bad" role="alert">${text}</p>`;
}

/** Writes a message that something worked. @param text HTML */
export function notice(text: string): string {
  return `<p class="good" role="status">${text}</p>`;
}

/** Writes a message that asks for one more step. @param text HTML */
export function ask(text: string): string {
  return `<p class="ask" role="status">${text}</p>`;
}

/** Links to the next steps: address and text of each. */
export function links(entries: readonly (readonly [href: string, text: string])[]): string {
  const items = entries.map(
    ([href, text]) => `<li><a href="${escapeHtml(href)}">${escapeHtml(text)}</a></li>`,
  );
  return `<ul class="links">${items.join('')}</ul>`;
}
