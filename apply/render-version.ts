/**
 * Raised by every release that renders other output for the same document: such a change is wanted by nobody on the
 * node, and `renderer-changed` says where it comes from. A test pins it together with what is rendered.
 */
export const RENDER_VERSION = 1;
