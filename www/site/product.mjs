// What framebatch is, in one sentence: what search engines and `llms.txt` show.

export const PRODUCT =
  "DataLoader for the GPU: the small GPU calls of a frame as one upload, one submission and one read-back";
