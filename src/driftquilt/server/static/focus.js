// The focus, where what had it is drawn anew, perhaps while a dialog is open.

let opener = null; // has the focus again when the dialog closes

/** What within a place has the focus, or gets it back when the dialog closes; null if nothing. */
export const focusedIn = (place) => {
  const element = opener ?? document.activeElement;
  return place.contains(element) ? element : null;
};

/** Gives the focus to an element, now or when the dialog closes. */
export const giveFocus = (element) => {
  if (opener === null) element.focus({ preventScroll: true });
  else opener = element;
};

/** Opens a dialog; `onClose` is told what it was closed with. */
export const openDialog = (dialog, onClose = () => {}) => {
  opener = document.activeElement;
  dialog.onclose = () => {
    const back = opener;
    opener = null;
    // The browser gives it back too, but knows nothing of what was drawn meanwhile.
    if (back.isConnected) back.focus({ preventScroll: true });
    onClose(dialog.returnValue);
  };
  dialog.showModal();
};

export const isDialogOpen = () => opener !== null;
