/**
 * Renders drawings as PNG, outside of the event loop. This is the only file that uses resvg, which has 4 MB: nothing
 * smaller draws text on Node without fonts and libraries of the system. It is loaded with the first image.
 *
 * An image takes some 10 ms of a core. So the latest images are stored, two are rendered at a time, and requests are
 * refused when the queue is full, because anybody may write such links.
 */
import { fileURLToPath } from 'node:url';
import { type ConcurrencyLimit, limitConcurrency } from '#api/concurrency.ts';
import { FONT_FAMILY } from './drawing.ts';

/** Maximum number of stored images of up to 30 kB. */
const IMAGES_MAX = 100;
/** Node has four threads for such work, and other work needs them too. */
const CONCURRENCY: ConcurrencyLimit = { runningMax: 2, waitingMax: 100, retryAfterSeconds: 1 };

interface Images {
  /**
   * @param svg a drawing that several requests need at once is rendered once
   * @throws ApiError too_many_requests if the queue is full
   */
  png(svg: string): Promise<Buffer>;
}

type Render = (svg: string) => Promise<Buffer>;

export function createImages(render: Render = renderPng): Images {
  const images = new Map<string, Promise<Buffer>>();
  const make = limitConcurrency(render, CONCURRENCY);
  return {
    async png(svg) {
      const known = images.get(svg);
      if (known !== undefined) return known;
      const oldest = images.size >= IMAGES_MAX ? images.keys().next().value : undefined;
      if (oldest !== undefined) images.delete(oldest);
      const image = make(svg);
      images.set(svg, image);
      image.catch(() => images.delete(svg));
      return image;
    },
  };
}

/** A font in the repository, so that images are the same on every machine. Its licence is in the same folder. */
const fontFile = fileURLToPath(new URL('./font/DejaVuSans-Bold.ttf', import.meta.url));

async function renderPng(svg: string): Promise<Buffer> {
  const { renderAsync } = await import('@resvg/resvg-js');
  const image = await renderAsync(svg, {
    font: { loadSystemFonts: false, fontFiles: [fontFile], defaultFontFamily: FONT_FAMILY },
  });
  return image.asPng();
}
