/**
 * Drawings as PNG, made outside of the event loop. The only file that knows resvg.
 *
 * An image takes some 10 ms of a core, so the latest ones are kept, two are made at a time, and who comes when a queue
 * has formed is told to come back: strangers' links must not keep the machine busy with pictures.
 */
import { createRequire } from 'node:module';
import { renderAsync } from '@resvg/resvg-js';
import { tooManyRequests } from '#api/errors.ts';
import { FONT_FAMILY } from './drawing.ts';

/** Of at most some 30 kB each. */
const IMAGES_MAX = 100;
/** Node has four threads for such work, which others need too. */
const AT_ONCE_MAX = 2;
const WAITING_MAX = 100;

export interface Images {
  /**
   * @param svg equal drawings that are asked for at the same time are made once
   * @throws ApiError too_many_requests when too many are being waited for
   */
  png(svg: string): Promise<Buffer>;
}

export type Render = (svg: string) => Promise<Buffer>;

export function createImages(render: Render = renderPng): Images {
  const images = new Map<string, Promise<Buffer>>();
  const waiting: (() => void)[] = [];
  let running = 0;

  const make = async (svg: string): Promise<Buffer> => {
    if (running >= AT_ONCE_MAX) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await render(svg);
    } finally {
      // The place is handed to the next in line, or given up.
      const next = waiting.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };

  return {
    async png(svg) {
      const known = images.get(svg);
      if (known !== undefined) return known;
      if (waiting.length >= WAITING_MAX) throw tooManyRequests(1);
      const oldest = images.size >= IMAGES_MAX ? images.keys().next().value : undefined;
      if (oldest !== undefined) images.delete(oldest);
      const image = make(svg);
      images.set(svg, image);
      image.catch(() => images.delete(svg));
      return image;
    },
  };
}

/** The font is a file of a package, so that the image is the same on every machine. */
const fontFile = createRequire(import.meta.url).resolve('dejavu-fonts-ttf/ttf/DejaVuSans-Bold.ttf');

async function renderPng(svg: string): Promise<Buffer> {
  const image = await renderAsync(svg, {
    font: { loadSystemFonts: false, fontFiles: [fontFile], defaultFontFamily: FONT_FAMILY },
  });
  return image.asPng();
}
